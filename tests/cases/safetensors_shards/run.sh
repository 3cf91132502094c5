# The golden layer, a tensor a file.
"$PYTHON" - "$PTXGEN_SOURCE/tests/golden/marlin_g128.safetensors" <<'END' || exit 1
import json, struct, sys
data = open(sys.argv[1], 'rb').read()
length = struct.unpack('<Q', data[:8])[0]
header = json.loads(data[8:8 + length])
metadata = header.pop('__metadata__', {})
index = {}
for i, (name, entry) in enumerate(header.items()):
    begin, end = entry['data_offsets']
    file = 'model-%05d-of-%05d.safetensors' % (i + 1, len(header))
    text = json.dumps({'__metadata__': metadata, name: {**entry, 'data_offsets': [0, end - begin]}}).encode()
    open(file, 'wb').write(struct.pack('<Q', len(text)) + text + data[8 + length + begin:8 + length + end])
    index[name] = file
json.dump({'metadata': {'total_size': len(data) - 8 - length}, 'weight_map': index},
          open('model.safetensors.index.json', 'w'), indent=2)
END
for file in model.safetensors.index.json . model-00003-of-*; do
    "$PTXGEN" run marlin --device cpu:sm_80 --safetensors $file --layer gptq --input A --expect C || exit 1
done
"$PTXGEN" convert model.safetensors.index.json whole --to packed || exit 1
"$PTXGEN" run marlin --device cpu:sm_80 --safetensors whole --layer gptq --input A --expect C || exit 1
rm model-00002-of-*
"$PTXGEN" run marlin --device cpu:sm_80 --safetensors . --layer gptq 2>said
[ $? = 4 ] && grep -q 'model-00002-of' said || { cat said; exit 1; }
