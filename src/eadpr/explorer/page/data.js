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

async function inBlock(data, kind, place) {
  const size = data.blocks[kind];
  const name = `${kind}${Math.floor(place / size)}`;
  if (!data.unpacked.has(name)) data.unpacked.set(name, unpack(name));
  return (await data.unpacked.get(name))[place % size];
}

/* The details of a question: by arm its ranking with scores and texts, its positives. */
export async function loadQuestion(data, place) {
  const details = await inBlock(data, "details", place);
  const hits = new Map(details.hits);
  const positives = new Map(details.positives.map((positive) => [positive.passage, positive]));
  const passages = new Map();
  for (const number of [...details.ranked.flat().map(([number]) => number), ...positives.keys()]) {
    const [id, title, text] = await inBlock(data, "texts", number);
    passages.set(number, {
      number, id, title, text, hit: hits.has(number), answers: hits.get(number) || [],
      positive: positives.get(number), relevant: details.relevant.includes(number),
    });
  }
  const rankings = details.ranked.map((ranking) => ranking.map(([number, score, ...sentence], i) => (
    { rank: i + 1, score, sentence, passage: passages.get(number) })));
  return { rankings, passages, positives: details.positives };
}
