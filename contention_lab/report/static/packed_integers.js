// Reads back what packed_integers.py wrote: whole numbers as LEB128 bytes in base64.

function unpacked(text) {
  const bytes = atob(text);
  let size = 0;
  for (let i = 0; i < bytes.length; i++) if (bytes.charCodeAt(i) < 128) size++;
  const found = new Float64Array(size); // exact up to 2^53, which shifts are not
  let place = 0;
  let number = 0;
  let scale = 1;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes.charCodeAt(i);
    number += (byte & 127) * scale;
    if (byte < 128) {
      found[place++] = number;
      number = 0;
      scale = 1;
    } else scale *= 128;
  }
  return found;
}

// The numbers whose differences were packed.
function unpackedSteps(text) {
  const found = unpacked(text);
  for (let i = 1; i < found.length; i++) found[i] += found[i - 1];
  return found;
}
