/* What is packed in the page: the columns of all questions at once, the rest a block at a time, when it is needed. */

async function unpacked(id, spelt = (text) => text) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(spelt(await new Response(stream).text()));
}

export async function load() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the data in this page (it has no DecompressionStream). Open the file with"
      + " Firefox 113, Chrome or Edge 103, Safari 16.4 or newer.");
  }
  const data = await unpacked("columns");
  data.place = new Map(data.ids.map((id, i) => [id, i]));
  data.found = data.questions.map((question, i) => [question, ...data.answers[i], data.ids[i]].join("\n").toLowerCase());
  data.blocksRead = new Map();
  const words = await unpacked("words");
  data.spelt = (text) => text.replace(/[\x01-\x1c][ -~]|[\x1d-\x1f][ -~]{2}/g, (code) => words[place(code)]);
  return data;
}

/* Of a code in the list of words, as packing.py numbers them. */
function place(code) {
  const [first, second, third] = [...code].map((sign) => sign.charCodeAt(0));
  return code.length === 2 ? (first - 1) * 95 + second - 32 : 28 * 95 + ((first - 29) * 95 + second - 32) * 95 + third - 32;
}

/* Numbers, a character each, and scores, which may be below 0, folded into such: as packing.py writes them. */
function numbersOf(signs) {
  return [...signs].map((sign) => sign.codePointAt(0)).map((code) => code - 0x23 - (code < 0xd800 ? 0 : 0x800));
}

function unfolded(number) {
  return number % 2 ? -(number + 1) / 2 : number / 2;
}

function summed(steps, direction) {
  let sum = 0;
  return steps.map((step, i) => (sum = i ? sum + direction * step : step));
}

async function inBlock(data, kind, place) {
  const size = data.blocks[kind];
  const name = `${kind}${Math.floor(place / size)}`;
  if (!data.blocksRead.has(name)) data.blocksRead.set(name, unpacked(name, kind === "texts" ? data.spelt : undefined));
  return (await data.blocksRead.get(name))[place % size];
}

/* A question in full: by arm its ranking with scores and texts (of a near-duplicate, which positive it is like and which
   question it was made for), its positives, what readers answered. */
export async function inFull(data, place) {
  const found = await inBlock(data, "details", place);
  const hits = new Map(found.hits);
  const positives = new Map(found.positives.map((one) => [one.passage, one]));
  const passages = [];
  for (const [place, number] of summed(numbersOf(found.pool), 1).entries()) {
    const [id, title, text, like, madeFor] = await inBlock(data, "texts", number);
    passages.push({
      place, id, title, text, like, madeFor, hit: hits.has(place), answers: hits.get(place) || [],
      positive: positives.get(place), relevant: found.relevant.includes(place),
    });
  }
  const rankings = found.ranked.map(([places, steps], arm) => {
    const scores = summed(numbersOf(steps).map(unfolded), -1);
    return numbersOf(places).map((place, i) => ({ rank: i + 1, score: scores[i] / 10 ** data.decimals[arm], passage: passages[place] }));
  });
  return { rankings, passages, positives: found.positives, read: found.read };
}
