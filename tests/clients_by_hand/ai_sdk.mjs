// Reads {"provider", "side", "texts"} from standard input; writes their vectors.
// NODE_PATH does not hold for modules: run it from a folder that has them.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const here = createRequire(process.cwd() + "/");
const load = (name) => import(pathToFileURL(here.resolve(name)));
const { embedMany } = await load("ai");
const { createCohere } = await load("@ai-sdk/cohere");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const { provider, side, texts } = JSON.parse(readFileSync(0, "utf8"));
const url = process.env.DSSM_URL ?? "http://127.0.0.1:8501";
const cohere = createCohere({ baseURL: `${url}/v2`, apiKey: "none" });
const openai = createOpenAICompatible({ name: "dssm", baseURL: `${url}/v1` });
const options = { cohere: { inputType: `search_${side}` } };
const { embeddings } =
  provider === "cohere"
    ? await embedMany({
        model: cohere.embeddingModel("towers"),
        values: texts,
        providerOptions: options,
      })
    : await embedMany({
        model: openai.embeddingModel(`${side}_encoder`),
        values: texts,
      });
writeFileSync(1, Buffer.from(Float32Array.from(embeddings.flat()).buffer));
