/* What is packed in the page: the columns of all questions at once, the rest a block at a time, when it is needed. */

async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
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
  return data;
}

async function inBlock(data, kind, place) {
  const size = data.blocks[kind];
  const name = `${kind}${Math.floor(place / size)}`;
  if (!data.blocksRead.has(name)) data.blocksRead.set(name, unpacked(name));
  return (await data.blocksRead.get(name))[place % size];
}

/* A question in full: by arm its ranking with scores and texts, its positives. */
export async function inFull(data, place) {
  const found = await inBlock(data, "details", place);
  const hits = new Map(found.hits);
  const positives = new Map(found.positives.map((one) => [one.passage, one]));
  const numbers = new Set([...found.ranked.flatMap(([passages]) => passages), ...positives.keys()]);
  const passages = new Map();
  for (const number of numbers) {
    const [id, title, text] = await inBlock(data, "texts", number);
    passages.set(number, {
      number, id, title, text, hit: hits.has(number), answers: hits.get(number) || [],
      positive: positives.get(number), relevant: found.relevant.includes(number),
    });
  }
  const rankings = found.ranked.map(([numbers, steps], arm) => {
    let score = 0;
    return numbers.map((number, i) => {
      score = i ? score - steps[i] : steps[i];
      return { rank: i + 1, score: score / 10 ** data.decimals[arm], passage: passages.get(number) };
    });
  });
  return { rankings, passages, positives: found.positives };
}
