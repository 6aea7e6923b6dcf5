/* The data in the page: the columns of all questions at once, the rest a block at a time, when it is needed. */

async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

export async function load() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the data in this page (it has no DecompressionStream). Open the file with"
      + " Firefox 113, Chrome or Edge 103, Safari 16.4 or newer.");
  }
  const data = await unpack("columns");
  data.place = new Map(data.ids.map((id, i) => [id, i]));
  data.searchable = data.questions.map((question, i) => [question, ...data.answers[i], data.ids[i]].join("\n").toLowerCase());
  data.unpacked = new Map();
  return data;
}

/* Numbers are packed as the first and the differences that follow. */
function summed(differences) {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
}

async function inBlock(data, kind, place) {
  const size = data.blocks[kind];
  const name = `${kind}${Math.floor(place / size)}`;
  if (!data.unpacked.has(name)) data.unpacked.set(name, unpack(name));
  return (await data.unpacked.get(name))[place % size];
}

/* The details of a question: by arm its ranking with scores and texts (of a near-duplicate also its positive and its
   question), its positives, readers' answers. */
export async function loadQuestion(data, place) {
  const details = await inBlock(data, "details", place);
  const hits = new Map(details.hits);
  const positives = new Map(details.positives.map((positive) => [positive.passage, positive]));
  const passages = [];
  for (const [place, number] of summed(details.pool).entries()) {
    const [id, title, text, like, madeFor] = await inBlock(data, "texts", number);
    passages.push({
      place, id, title, text, like, madeFor, hit: hits.has(place), answers: hits.get(place) || [],
      positive: positives.get(place), relevant: details.relevant.includes(place),
    });
  }
  const rankings = details.ranked.map(([places, differences], arm) => {
    const scores = summed(differences);
    return places.map((place, i) => ({ rank: i + 1, score: scores[i] / 10 ** data.decimals[arm], passage: passages[place] }));
  });
  return { rankings, passages, positives: details.positives, read: details.read };
}
