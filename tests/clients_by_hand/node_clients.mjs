// Reads {"client", "side", "texts"}, or {"client", "query", "titles"}, from
// standard input. Writes the vectors of the texts, or index and score of the
// best titles, best first, as float32.
// NODE_PATH does not hold for modules: run it from a folder that has them.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const here = createRequire(process.cwd() + "/");
const load = (name) => import(pathToFileURL(here.resolve(name)));
const { client, side, texts, query, titles } = JSON.parse(
  readFileSync(0, "utf8")
);
const url = process.env.DSSM_URL ?? "http://127.0.0.1:8501";

const model = "towers";

async function cohere() {
  const { CohereClient } = await load("cohere-ai");
  return new CohereClient({ token: "none", environment: url });
}

const embedded = {
  async "AI SDK cohere"() {
    const { embedMany } = await load("ai");
    const { createCohere } = await load("@ai-sdk/cohere");
    const provider = createCohere({ baseURL: `${url}/v2`, apiKey: "none" });
    const { embeddings } = await embedMany({
      model: provider.embeddingModel(model),
      values: texts,
      providerOptions: { cohere: { inputType: `search_${side}` } },
    });
    return embeddings;
  },

  async "AI SDK openai-compatible"() {
    const { embedMany } = await load("ai");
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
    const provider = createOpenAICompatible({
      name: "dssm",
      baseURL: `${url}/v1`,
    });
    const { embeddings } = await embedMany({
      model: provider.embeddingModel(`${side}_encoder`),
      values: texts,
    });
    return embeddings;
  },

  async "cohere-ai"() {
    const client = await cohere();
    const vectors = [];
    for (let start = 0; start < texts.length; start += 2048) {
      const { embeddings } = await client.v2.embed({
        model,
        texts: texts.slice(start, start + 2048),
        inputType: `search_${side}`,
        embeddingTypes: ["float"],
      });
      vectors.push(...embeddings.float);
    }
    return vectors;
  },

  async "@langchain/cohere"() {
    const { CohereEmbeddings } = await load("@langchain/cohere");
    return both(new CohereEmbeddings({ model, client: await cohere() }));
  },

  async "@langchain/openai"() {
    const { OpenAIEmbeddings } = await load("@langchain/openai");
    return both(
      new OpenAIEmbeddings({
        model: `${side}_encoder`,
        apiKey: "none",
        configuration: { baseURL: `${url}/v1` },
      })
    );
  },
};

async function both(embeddings) {
  if (side === "document") return embeddings.embedDocuments(texts);
  const vectors = [];
  for (const text of texts) vectors.push(await embeddings.embedQuery(text));
  return vectors;
}

const ranked = {
  async "cohere-ai"() {
    const client = await cohere();
    const asked = { model, query, documents: titles };
    return (await client.v2.rerank(asked)).results;
  },

  async "@langchain/cohere"() {
    const { CohereRerank } = await load("@langchain/cohere");
    const reranker = new CohereRerank({ model, client: await cohere() });
    return reranker.rerank(titles, query);
  },
};

const rows = texts
  ? await embedded[client]()
  : (await ranked[client]()).map((r) => [r.index, r.relevanceScore]);
writeFileSync(1, Buffer.from(Float32Array.from(rows.flat()).buffer));
