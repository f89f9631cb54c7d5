//! The quantised blocks of GGUF files, and how they lie in the panels of [`crate::BlockLinear`].
//!
//! A file holds a row of weights as blocks of 32 (or 256) with their scales. A panel holds `WIDTH` rows side by side: first
//! the scales of a unit (32 inputs, or 256 for the K kinds), register by register, then for each 32 inputs eight *fours*: the
//! bytes of four inputs of every row. Of each four the low halves of bytes come first, the fours k and k + 4 in one
//! register; then, where weights have 5 or 6 bits, what is above them. Nothing is rounded: scales and integers are those of
//! the file.

/// A quantised kind of tensor, as GGUF files name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)]
pub enum BlockKind {
    /// `d × (q − 8)`, 4 bits.
    Q4_0,
    /// `d × q + m`, 4 bits.
    Q4_1,
    /// `d × (q − 16)`, 5 bits.
    Q5_0,
    /// `d × q + m`, 5 bits.
    Q5_1,
    /// `d × q`, 8 bits, signed.
    Q8_0,
    /// `d × s × q − e × m`, 4 bits, 256 to a block, s and m of 6 bits for each 32.
    Q4K,
    /// The same with 5 bits.
    Q5K,
    /// `d × s × (q − 32)`, 6 bits, 256 to a block, s of 8 bits for each 16.
    Q6K,
}

impl BlockKind {
    /// Weights of a block.
    #[must_use]
    pub fn inputs(self) -> usize {
        match self {
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
            _ => 32,
        }
    }

    /// Bytes of a block in a file.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q5_0 => 22,
            Self::Q5_1 => 24,
            Self::Q8_0 => 34,
            Self::Q4K => 144,
            Self::Q5K => 176,
            Self::Q6K => 210,
        }
    }

    /// Bits of a weight.
    pub(crate) fn bits(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 | Self::Q4K => 4,
            Self::Q5_0 | Self::Q5_1 | Self::Q5K => 5,
            Self::Q6K => 6,
            Self::Q8_0 => 8,
        }
    }

    /// Bytes of a scale register's worth of one column before the weights of a unit.
    pub(crate) fn header(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q5_0 | Self::Q8_0 => 2,
            Self::Q4_1 | Self::Q5_1 => 4,
            Self::Q4K | Self::Q5K => 4 + 16,
            Self::Q6K => 2 + 16,
        }
    }

    /// Bytes that 32 weights of a column take in a panel.
    pub(crate) fn quarter(self) -> usize {
        self.bits() * 4
    }

    /// Bytes of one column and one unit in a panel.
    pub(crate) fn unit(self) -> usize {
        self.header() + self.inputs() / 32 * self.quarter()
    }
}

/// One column of a panel of `width`, written or read by its parts.
pub(crate) struct Column<B> {
    pub(crate) kind: BlockKind,
    pub(crate) width: usize,
    pub(crate) column: usize,
    /// Of [`BlockKind::Q8_0`]: weights as they are, or 128 more.
    pub(crate) signed: bool,
    /// The panel.
    pub(crate) panel: B,
}

impl<B> Column<B> {
    /// Where unit `unit` starts in the panel.
    fn unit_at(&self, unit: usize) -> usize {
        unit * self.kind.unit() * self.width
    }

    /// Where the 32 weights `sub` of a unit start.
    fn quarter_at(&self, unit: usize, sub: usize) -> usize {
        self.unit_at(unit) + (self.kind.header() + sub * self.kind.quarter()) * self.width
    }

    /// Where four `four` of them lies, in registers of bytes counted from `quarter_at`.
    fn four_at(&self, quarter: usize, four: usize) -> usize {
        quarter + (four * self.width + self.column) * 4
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

const LOW: u32 = 0x0F0F_0F0F;
const ONES: u32 = 0x0101_0101;

impl Column<&mut [u8]> {
    /// Lays out block `unit` of a row, as a file has it.
    pub(crate) fn write(&mut self, unit: usize, block: &[u8]) {
        let (width, column) = (self.width, self.column);
        let header = self.unit_at(unit);
        let mut half = |index: usize, from: usize| {
            let at = header + (index * width + column) * 2;
            self.panel[at..at + 2].copy_from_slice(&block[from..from + 2]);
        };
        match self.kind {
            BlockKind::Q4_0 | BlockKind::Q5_0 | BlockKind::Q8_0 => half(0, 0),
            BlockKind::Q4_1 | BlockKind::Q5_1 => [0, 1].into_iter().for_each(|index| half(index, index * 2)),
            BlockKind::Q4K | BlockKind::Q5K => {
                [0, 1].into_iter().for_each(|index| half(index, index * 2));
                for sub in 0..8 {
                    let (scale, least) = scale_and_least(&block[4..16], sub);
                    self.panel[header + (4 + sub) * width + column] = scale;
                    self.panel[header + (12 + sub) * width + column] = least;
                }
            }
            BlockKind::Q6K => {
                half(0, 208);
                for sub in 0..16 {
                    self.panel[header + (2 + sub) * width + column] = block[192 + sub];
                }
            }
        }
        for sub in 0..self.kind.inputs() / 32 {
            self.write_quarter(self.quarter_at(unit, sub), &fours(self.kind, block, sub));
        }
    }

    #[inline(always)]
    fn write_quarter(&mut self, quarter: usize, fours: &[u32; 8]) {
        let stride = self.width * 4;
        let bytes = &mut self.panel[quarter..][..self.kind.quarter() * self.width];
        assert!(self.column < self.width);
        let mut put = |place: usize, value: u32| {
            debug_assert!((place + 1) * stride <= bytes.len());
            // SAFETY: a quarter has a register for each place below, and the column is one of its lanes.
            unsafe {
                bytes.as_mut_ptr().add(place * stride + self.column * 4).cast::<u32>().write_unaligned(value.to_le());
            };
        };
        match self.kind.bits() {
            8 => {
                let flip = if self.signed { 0 } else { ONES << 7 };
                fours.iter().enumerate().for_each(|(four, value)| put(four, value ^ flip));
            }
            bits => {
                for four in 0..4 {
                    put(four, fours[four] & LOW | (fours[four + 4] & LOW) << 4);
                }
                if bits == 5 {
                    put(4, (0..8).fold(0, |all, four| all | (fours[four] >> 4 & ONES) << four));
                }
                if bits == 6 {
                    for part in 0..2 {
                        let bits = |four: usize| (fours[part * 4 + four] >> 4 & (ONES * 3)) << (2 * four);
                        put(4 + part, bits(0) | bits(1) | bits(2) | bits(3));
                    }
                }
            }
        }
    }
}

impl Column<&[u8]> {
    /// The weights of unit `unit`, into as many numbers.
    pub(crate) fn read(&self, unit: usize, weights: &mut [f32]) {
        let (width, column) = (self.width, self.column);
        let header = self.unit_at(unit);
        let half = |index: usize| {
            let at = header + (index * width + column) * 2;
            half_to_float(u16::from_le_bytes([self.panel[at], self.panel[at + 1]]))
        };
        let byte = |index: usize| self.panel[header + index * width + column];
        for (sub, weights) in weights.chunks_exact_mut(32).enumerate() {
            let integers = self.read_quarter(self.quarter_at(unit, sub));
            for (index, (weight, q)) in weights.iter_mut().zip(integers).enumerate() {
                let q = f32::from(q);
                *weight = match self.kind {
                    BlockKind::Q4_0 => half(0) * (q - 8.0),
                    BlockKind::Q5_0 => half(0) * (q - 16.0),
                    BlockKind::Q8_0 => half(0) * q,
                    BlockKind::Q4_1 | BlockKind::Q5_1 => half(0) * q + half(1),
                    BlockKind::Q4K | BlockKind::Q5K => {
                        half(0) * f32::from(byte(4 + sub)) * q - half(1) * f32::from(byte(12 + sub))
                    }
                    BlockKind::Q6K => half(0) * f32::from(byte(2 + 2 * sub + index / 16) as i8) * (q - 32.0),
                };
            }
        }
    }

    fn read_quarter(&self, quarter: usize) -> [i16; 32] {
        let register = |place: usize| word(self.panel, self.four_at(quarter, place));
        let mut integers = [0i16; 32];
        for (index, integer) in integers.iter_mut().enumerate() {
            let (four, byte) = (index / 4, index % 4 * 8);
            *integer = if self.kind.bits() == 8 {
                let flip = if self.signed { 0 } else { 0x80 };
                i16::from((register(four) >> byte) as u8 as i8 ^ flip as u8 as i8)
            } else {
                let low = register(four % 4) >> (byte + four / 4 * 4) & 15;
                let high = match self.kind.bits() {
                    5 => register(4) >> (byte + four) & 1,
                    6 => register(4 + four / 4) >> (byte + four % 4 * 2) & 3,
                    _ => 0,
                };
                (low | high << 4) as i16
            };
        }
        integers
    }
}

/// The fours of the 32 weights `sub` of a block: unsigned bytes, of Q8_0 signed ones.
#[inline(always)]
fn fours(kind: BlockKind, block: &[u8], sub: usize) -> [u32; 8] {
    match kind {
        BlockKind::Q4_0 => nibbles(&block[2..18]),
        BlockKind::Q4_1 => nibbles(&block[4..20]),
        BlockKind::Q5_0 => with_fifth(nibbles(&block[6..22]), word(block, 2)),
        BlockKind::Q5_1 => with_fifth(nibbles(&block[8..24]), word(block, 4)),
        BlockKind::Q8_0 => words(&block[2..34]),
        BlockKind::Q4K => words(&block[16 + sub / 2 * 32..]).map(|word| word >> (sub % 2 * 4) & LOW),
        BlockKind::Q5K => {
            let low = words(&block[48 + sub / 2 * 32..]);
            let high = words(&block[16..48]);
            let both = |four: usize| low[four] >> (sub % 2 * 4) & LOW | (high[four] >> sub & ONES) << 4;
            std::array::from_fn(both)
        }
        BlockKind::Q6K => {
            let (part, quarter) = (sub / 4, sub % 4);
            let low = words(&block[64 * part + 32 * (quarter % 2)..]);
            let high = words(&block[128 + 32 * part..]);
            let both =
                |four: usize| low[four] >> (quarter / 2 * 4) & LOW | (high[four] >> (2 * quarter) & (ONES * 3)) << 4;
            std::array::from_fn(both)
        }
    }
}

/// The first 32 bytes.
#[inline(always)]
fn words(bytes: &[u8]) -> [u32; 8] {
    let bytes = &bytes[..32];
    std::array::from_fn(|four| word(bytes, 4 * four))
}

/// The low halves of 16 bytes, and then the high ones.
#[inline(always)]
fn nibbles(bytes: &[u8]) -> [u32; 8] {
    let bytes = &bytes[..16];
    std::array::from_fn(|four| word(bytes, four % 4 * 4) >> (four / 4 * 4) & LOW)
}

/// Adds a fifth bit to each of 32 weights.
#[inline(always)]
fn with_fifth(fours: [u32; 8], bits: u32) -> [u32; 8] {
    // Four bits go to bit 4 of four bytes each.
    let spread = |bits: u32| ((bits & 15).wrapping_mul(0x0020_4081) & ONES) << 4;
    std::array::from_fn(|four| fours[four] | spread(bits >> (4 * four)))
}

/// Scale and least value, of six bits each, of the 32 weights `sub` of a block of Q4K or Q5K.
fn scale_and_least(packed: &[u8], sub: usize) -> (u8, u8) {
    if sub < 4 {
        (packed[sub] & 63, packed[sub + 4] & 63)
    } else {
        (packed[sub + 4] & 15 | packed[sub - 4] >> 6 << 4, packed[sub + 4] >> 4 | packed[sub] >> 6 << 4)
    }
}

/// A 16-bit float as a 32-bit one, exactly: the exponent is moved by a multiplication, which is right for subnormal ones too.
pub(crate) fn half_to_float(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7FFF) << 13;
    let sign = u32::from(half & 0x8000) << 16;
    let infinite = if magnitude >= 0x7C00 << 13 { 0x7F80_0000 } else { 0 };
    let float = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    f32::from_bits(float.to_bits() | infinite | sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        let cases = [
            (0x0000, 0.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x7BFF, 65_504.0),
            (0x0001, f32::from_bits((127 - 24) << 23)),
            (0x3555, 0.333_251_95),
        ];
        for (half, float) in cases {
            assert_eq!(half_to_float(half), float);
        }
        assert_eq!(half_to_float(0x7C00), f32::INFINITY);
        assert_eq!(half_to_float(0xFC00), f32::NEG_INFINITY);
        assert!(half_to_float(0x7E00).is_nan());
    }
}
