// Writes H.264 syntax elements (ITU-T H.264 clause 7.3 and 9.1) and wraps them as Annex B NAL units.

export class BitWriter {
  #bytes = [];
  #bits = 0;

  u(count, value) {
    for (let bit = count - 1; bit >= 0; bit -= 1) {
      if (this.#bits % 8 === 0) this.#bytes.push(0);
      const one = Math.floor(value / 2 ** bit) % 2;
      this.#bytes[this.#bytes.length - 1] |= one << (7 - (this.#bits % 8));
      this.#bits += 1;
    }
    return this;
  }

  ue(value) {
    const length = Math.floor(Math.log2(value + 1));
    return this.u(length, 0).u(length + 1, value + 1);
  }

  se(value) {
    return this.ue(value > 0 ? 2 * value - 1 : -2 * value);
  }

  alignZero() {
    this.#bits = this.#bytes.length * 8;
    return this;
  }

  bytes(values) {
    for (const value of values) this.#bytes.push(value);
    this.#bits = this.#bytes.length * 8;
    return this;
  }

  // Adds the stop bit, protects against start codes inside, and puts a start code and `header` in front.
  nal(header) {
    this.u(1, 1);
    return nalOf(header, this.#bytes);
  }
}

export function nalOf(header, payload) {
  const out = [0, 0, 0, 1, header];
  let zeros = 0;
  for (const byte of payload) {
    if (zeros >= 2 && byte <= 3) {
      out.push(3);
      zeros = 0;
    }
    out.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(out);
}

// The payload of a NAL unit without its emulation prevention bytes.
export function unescape(nal) {
  const out = [];
  let zeros = 0;
  for (const byte of nal) {
    if (zeros >= 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    out.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return out;
}
