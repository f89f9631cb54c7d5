//! Attention of a decoder over pages of remembered keys and values.
//!
//! A page holds [`PAGE`] tokens. Of each key head it holds the keys in panels of `WIDTH × FLOAT_VECTORS` tokens, number by
//! number, and then the values in panels of as many numbers, token by token, all as 16-bit floats. Queries go over the pages
//! once, with the running greatest score and sum of Milakov and Gimelshein 2018 (as in FlashAttention, Dao et al. 2022).

use crate::buffer::Buffer;
use crate::float_linear::{tile_rows, with_rows};
use crate::functions::power_of_two;
use crate::isa::{Isa, constant, kernel};
use crate::lanes::{FLOAT_VECTORS, Lanes};
use crate::team::{Pointer, Team};

/// Tokens of a page.
pub const PAGE: usize = 64;

/// Heads of a layer, and what a query may see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CausalHeads {
    /// Query heads.
    pub count: usize,
    /// Heads of keys and values: a divisor of `count`; as many query heads in a row share one (Ainslie et al. 2023).
    pub groups: usize,
    /// Numbers of a head.
    pub size: usize,
    /// What scores are multiplied with.
    pub scale: f32,
    /// Keys that a query sees at most, its own among them.
    pub window: Option<usize>,
}

impl CausalHeads {
    /// 16-bit floats of a page.
    #[must_use]
    pub fn page_len(&self, isa: Isa) -> usize {
        self.groups * self.group_len(panel(isa))
    }

    fn group_len(&self, width: usize) -> usize {
        PAGE * (self.size + self.size.next_multiple_of(width))
    }

    /// Remembers `key` and `value` `[groups, size]` as those of token `slot` of a page.
    ///
    /// # Panics
    /// If the lengths don't fit, or a page has no such token.
    pub fn remember(&self, isa: Isa, page: &mut [u16], slot: usize, key: &[f32], value: &[f32]) {
        let (width, size) = (panel(isa), self.size);
        assert!(page.len() == self.page_len(isa) && slot < PAGE, "token {slot} of a page");
        assert!(key.len() == self.groups * size && value.len() == key.len(), "a key and a value of every head");
        for (group, page) in page.chunks_exact_mut(self.group_len(width)).enumerate() {
            let (keys, values) = page.split_at_mut(PAGE * size);
            let from = slot / width * width * size + slot % width;
            for (number, x) in key[group * size..][..size].iter().enumerate() {
                keys[from + number * width] = float_to_half(*x);
            }
            for (number, x) in value[group * size..][..size].iter().enumerate() {
                values[number / width * PAGE * width + slot * width + number % width] = float_to_half(*x);
            }
        }
    }

    /// Attention of the tokens from `start` on, whose queries are `[tokens, count, size]`, over the `pages` of all tokens up
    /// to them; into `out`, of the same shape.
    ///
    /// # Panics
    /// If the lengths don't fit.
    pub fn attend(&self, isa: Isa, team: &Team, queries: &[f32], start: usize, pages: &[&[u16]], out: &mut [f32]) {
        let hidden = self.count * self.size;
        let tokens = queries.len() / hidden;
        assert!(queries.len() == tokens * hidden && out.len() == queries.len(), "whole tokens");
        assert!(self.groups > 0 && self.count.is_multiple_of(self.groups), "{} heads for {}", self.groups, self.count);
        assert!(pages.len() * PAGE >= start + tokens, "pages for {} tokens", start + tokens);
        assert!(pages.iter().all(|page| page.len() == self.page_len(isa)), "whole pages");
        let rows = tokens * (self.count / self.groups);
        let pieces = rows.div_ceil(constant!(isa, FLOAT_ROWS));
        let to = Pointer(out.as_mut_ptr());
        team.each(self.groups * pieces, |piece| {
            let group = piece % self.groups;
            let even = rows.div_ceil(pieces);
            let first = piece / self.groups * even;
            let taken = even.min(rows.saturating_sub(first));
            if taken > 0 {
                // SAFETY: lengths are checked above; pieces are of different rows or heads.
                unsafe { some_rows(isa, self, queries, start, pages, group, first, taken, to) };
            }
        });
    }
}

/// Columns of a panel.
fn panel(isa: Isa) -> usize {
    FLOAT_VECTORS * constant!(isa, WIDTH)
}

/// The nearest 16-bit float, ties to even; beyond the greatest, infinity.
fn float_to_half(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = f32::from_bits(bits & 0x7FFF_FFFF);
    if magnitude.is_nan() {
        return sign | 0x7E00;
    }
    if magnitude >= 65_520.0 {
        return sign | 0x7C00;
    }
    if magnitude < 6.103_515_6e-5 {
        // Below 2⁻¹⁴ steps are of 2⁻²⁴; adding ½ rounds to them in the last places of an `f32`.
        return sign | (magnitude + 0.5).to_bits() as u16;
    }
    let bits = magnitude.to_bits();
    let odd = bits >> 13 & 1;
    sign | ((bits + 0x0FFF + odd - (112 << 23)) >> 13) as u16
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn piece<L: Lanes>(
    heads: &CausalHeads,
    queries: &[f32],
    start: usize,
    pages: &[&[u16]],
    group: usize,
    first: usize,
    taken: usize,
    out: Pointer<f32>,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let taken = tile_rows(taken, L::FLOAT_ROWS);
        with_rows!(L, taken, L::FLOAT_ROWS, rows(heads, queries, start, pages, group, first, out));
    }
}
kernel!(
    fn some_rows(
        heads: &CausalHeads,
        queries: &[f32],
        start: usize,
        pages: &[&[u16]],
        group: usize,
        first: usize,
        taken: usize,
        out: Pointer<f32>,
    ) = piece
);

/// `R` rows of one group: of each token the query heads that share the group's keys, token by token.
#[inline(always)]
unsafe fn rows<L: Lanes, const R: usize>(
    heads: &CausalHeads,
    queries: &[f32],
    start: usize,
    pages: &[&[u16]],
    group: usize,
    first: usize,
    out: Pointer<f32>,
) {
    let size = heads.size;
    let width = FLOAT_VECTORS * L::WIDTH;
    let padded = size.next_multiple_of(width);
    let shared = heads.count / heads.groups;
    let place = |r: usize| {
        let (token, head) = ((first + r) / shared, group * shared + (first + r) % shared);
        (token, (token * heads.count + head) * size)
    };
    let mut scratch = Buffer::zeroed(R * (size + PAGE + padded));
    let (scaled, rest) = scratch.split_at_mut(R * size);
    let (scores, mixed) = rest.split_at_mut(R * PAGE);
    for r in 0..R {
        for (to, x) in scaled[r * size..][..size].iter_mut().zip(&queries[place(r).1..][..size]) {
            // Scores are of powers of two.
            *to = x * (heads.scale * std::f32::consts::LOG2_E);
        }
    }
    let position = |r: usize| start + place(r).0;
    let oldest = |r: usize| heads.window.map_or(0, |window| (position(r) + 1).saturating_sub(window));
    let mut greatest = [f32::NEG_INFINITY; R];
    let mut sums = [0.0f32; R];
    for (number, page) in pages.iter().enumerate().take(position(R - 1) / PAGE + 1).skip(oldest(0) / PAGE) {
        let page = &page[group * heads.group_len(width)..][..heads.group_len(width)];
        let seen = (position(R - 1) + 1 - number * PAGE).min(PAGE);
        let panels = seen.div_ceil(width);
        // SAFETY: the page holds whole panels of keys and values, and the scratch rows for `R` queries.
        unsafe {
            for panel in 0..panels {
                let mut tile = [[L::splat(0.0); FLOAT_VECTORS]; R];
                half_tile::<L, R>(scaled.as_ptr(), size, page.as_ptr().add(panel * width * size), size, &mut tile);
                for r in 0..R {
                    for c in 0..FLOAT_VECTORS {
                        L::store(scores.as_mut_ptr().add(r * PAGE + panel * width + c * L::WIDTH), tile[r][c]);
                    }
                }
            }
            let mut factors = [1.0f32; R];
            for r in 0..R {
                let from = oldest(r).saturating_sub(number * PAGE).min(seen);
                let to = (position(r) + 1).saturating_sub(number * PAGE).min(seen).max(from);
                let row = &mut scores[r * PAGE..][..panels * width];
                if from == to {
                    row.fill(0.0);
                    continue;
                }
                row[..from].fill(f32::NEG_INFINITY);
                row[to..].fill(f32::NEG_INFINITY);
                factors[r] = soften::<L>(row, from, to, &mut greatest[r], &mut sums[r]);
            }
            let values = page.as_ptr().add(PAGE * size);
            for panel in 0..padded / width {
                let mut tile = [[L::splat(0.0); FLOAT_VECTORS]; R];
                for r in 0..R {
                    for c in 0..FLOAT_VECTORS {
                        let at = mixed.as_ptr().add(r * padded + panel * width + c * L::WIDTH);
                        tile[r][c] = L::mul(L::load(at), L::splat(factors[r]));
                    }
                }
                half_tile::<L, R>(scores.as_ptr(), PAGE, values.add(panel * width * PAGE), seen, &mut tile);
                for r in 0..R {
                    for c in 0..FLOAT_VECTORS {
                        let at = mixed.as_mut_ptr().add(r * padded + panel * width + c * L::WIDTH);
                        L::store(at, tile[r][c]);
                    }
                }
            }
        }
    }
    for r in 0..R {
        let inverse = 1.0 / sums[r];
        for (number, x) in mixed[r * padded..][..size].iter().enumerate() {
            // SAFETY: the row is in `out`, and this piece's alone.
            unsafe { *out.at(place(r).1 + number) = x * inverse };
        }
    }
}

/// Puts `2^(score − greatest)` in place of the scores `from .. to` of a row and 0 in place of all others, and returns what
/// was mixed under the greatest score before is to be multiplied with.
#[inline(always)]
unsafe fn soften<L: Lanes>(row: &mut [f32], from: usize, to: usize, greatest: &mut f32, sum: &mut f32) -> f32 {
    // SAFETY: rows are whole registers.
    unsafe {
        let mut most = L::splat(*greatest);
        for at in (0..row.len()).step_by(L::WIDTH) {
            most = L::max(most, L::load(row.as_ptr().add(at)));
        }
        let now = L::largest(most);
        let factor = if now > *greatest { (*greatest - now).exp2() } else { 1.0 };
        let offset = L::splat(now);
        for at in (0..row.len()).step_by(L::WIDTH) {
            let at = row.as_mut_ptr().add(at);
            L::store(at, power_of_two::<L>(L::sub(L::load(at), offset)));
        }
        row[..from].fill(0.0);
        row[to..].fill(0.0);
        let mut total = L::splat(0.0);
        for at in (0..row.len()).step_by(L::WIDTH) {
            total = L::add(total, L::load(row.as_ptr().add(at)));
        }
        *greatest = now;
        *sum = *sum * factor + L::sum(total);
        factor
    }
}

/// Adds to `sums` `R` rows at `a`, `a + row`, … times a panel of 16-bit floats, `inputs` rows of it.
#[inline(always)]
unsafe fn half_tile<L: Lanes, const R: usize>(
    a: *const f32,
    row: usize,
    panel: *const u16,
    inputs: usize,
    sums: &mut [[L::Float; FLOAT_VECTORS]; R],
) {
    // SAFETY: the caller's contract: rows hold `inputs` numbers, and the panel as many whole rows.
    unsafe {
        let (mut panel, mut a) = (panel, a);
        for _ in 0..inputs {
            let mut weights = [L::splat(0.0); FLOAT_VECTORS];
            for c in 0..FLOAT_VECTORS {
                weights[c] = L::load_half(panel.add(c * L::WIDTH));
            }
            for r in 0..R {
                let x = L::splat(*a.add(r * row));
                for c in 0..FLOAT_VECTORS {
                    sums[r][c] = L::mul_add(x, weights[c], sums[r][c]);
                }
            }
            panel = panel.add(FLOAT_VECTORS * L::WIDTH);
            a = a.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_format::half_to_float;

    #[test]
    fn floats_become_the_nearest_half() {
        for half in (0..=0xFFFFu16).filter(|half| half & 0x7FFF <= 0x7C00) {
            assert_eq!(float_to_half(half_to_float(half)), half, "{half:#x}");
        }
        // Half-way between two goes to the even one, a little more to the upper.
        for (x, half) in [
            (1.0 + 2f32.powi(-11), 0x3C00),
            (1.0 + 3.0 * 2f32.powi(-11), 0x3C02),
            (1.0 + 2f32.powi(-11) + 1e-6, 0x3C01),
        ] {
            assert_eq!(float_to_half(x), half, "{x}");
            assert_eq!(float_to_half(-x), half | 0x8000, "{x}");
        }
        assert_eq!(float_to_half(65_519.0), 0x7BFF);
        assert_eq!(float_to_half(1e9), 0x7C00);
        assert_eq!(float_to_half(f32::NAN) & 0x7FFF, 0x7E00);
    }
}
