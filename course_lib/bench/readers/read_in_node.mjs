// onnxruntime-node, and transformers.js' fill-mask on it: `node read_in_node.mjs WORK` prints a line
// of JSON for each folder of WORK, as each.py does. Run where both packages are installed.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.cwd(), 'package.json'));
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const packages = ['onnxruntime-node', '@huggingface/transformers'], readers = ['onnxruntime-node', 'transformers.js'];
const versions = Object.fromEntries(
    packages.map((name) => [name, read(join('node_modules', name, 'package.json')).version]));
const ort = require('onnxruntime-node');
const { env, pipeline } = await import(pathToFileURL(require.resolve('@huggingface/transformers')));
const work = process.argv[2];
env.allowRemoteModels = false;
env.localModelPath = work;

async function inRuntime(folder, expected) {
    const session = await ort.InferenceSession.create(join(folder, 'onnx', 'model.onnx'));
    const ids = expected.blank_ids.map(BigInt), shape = [1, ids.length];
    const values = { input_ids: ids, attention_mask: ids.map(() => 1n), token_type_ids: ids.map(() => 0n) };
    const inputs = Object.fromEntries(session.inputNames.map(
        (name) => [name, new ort.Tensor('int64', BigInt64Array.from(values[name]), shape)]));
    const { logits } = await session.run(inputs);
    const ours = expected.blank_logits.flat(), apart = ours.map((x, i) => Math.abs(x - logits.data[i + expected.first]));
    return { difference: Math.max(...apart) / Math.max(1, ...ours.map(Math.abs)), lost: 'training' };
}

// The masked token's five best words must be ours, and so their probabilities.
async function fillMask(name, expected) {
    if (!expected.best) return { says: 'no masked-LM head' };
    const fill = await pipeline('fill-mask', name, { dtype: 'fp32' });
    const words = await fill(expected.blank, { top_k: 5 });
    if (words.some((word, i) => word.token !== expected.best[i])) throw Error('other words');
    const apart = words.map((word, i) => Math.abs(word.score - expected.probabilities[i]));
    return { difference: Math.max(...apart) / expected.probabilities[0], lost: 'training' };
}

async function row(call) {
    try { return await call(); } catch (error) { return { says: String(error).split('\n')[0].slice(0, 160) }; }
}

const print = (reader, line) => console.log(JSON.stringify({ reader, ...line }));
for (const reader of readers) print(reader, { versions });
for (const name of readdirSync(work).sort()) {
    const file = join(work, name, 'expected.json');
    if (!existsSync(file)) {
        for (const reader of readers) print(reader, { model: name, says: 'reads texts only' });
        continue;
    }
    const expected = read(file);
    print(readers[0], { model: name, ...(await row(() => inRuntime(join(work, name), expected))) });
    print(readers[1], { model: name, ...(await row(() => fillMask(name, expected))) });
}
