//! Huffman codes as deflate wants them: canonical, of limited length, each code's first bit lowest.

/// The bits of a symbol, the first of them lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Symbol {
    pub bits: u32,
    pub count: u32,
}

impl Symbol {
    /// Its bits, and how many they are.
    pub fn alone(self) -> (u64, u32) {
        (u64::from(self.bits), self.count)
    }
}

/// A code for symbols that come up so often, at least two of them at all; those that never do have no bits.
///
/// It is the shortest there is, or nearly so where that would have a symbol of more than `longest` bits.
pub(super) fn code<const N: usize>(counts: &[u32; N], longest: u32) -> [Symbol; N] {
    // Rarer symbols would get more bits.
    let mut least = counts.iter().sum::<u32>() >> longest;
    loop {
        let raised = counts.map(|count| if count == 0 { 0 } else { count.max(least) });
        let lengths = lengths(&raised);
        if lengths.iter().all(|&length| length <= longest) {
            return canonical(&lengths);
        }
        least = 2 * least + 1;
    }
}

/// Bits of each symbol.
fn lengths<const N: usize>(counts: &[u32; N]) -> [u32; N] {
    let mut rare: Vec<usize> = (0..N).filter(|&symbol| counts[symbol] > 0).collect();
    rare.sort_by_key(|&symbol| counts[symbol]);
    // Nodes that join two others are made in the order of their counts, so the rarest two of all are always at the
    // head of one of two queues.
    let mut nodes: Vec<(u32, usize)> = rare.iter().map(|&symbol| (counts[symbol], 0)).collect();
    let leaves = nodes.len();
    let (mut leaf, mut joint) = (0, leaves);
    for _ in 1..leaves {
        let mut sum = 0;
        for _ in 0..2 {
            let next = if leaf < leaves && (joint == nodes.len() || nodes[leaf].0 <= nodes[joint].0) {
                &mut leaf
            } else {
                &mut joint
            };
            sum += nodes[*next].0;
            let parent = nodes.len();
            nodes[*next].1 = parent;
            *next += 1;
        }
        nodes.push((sum, 0));
    }
    let mut depths = vec![0; nodes.len()];
    for node in (0..nodes.len() - 1).rev() {
        depths[node] = depths[nodes[node].1] + 1;
    }
    let mut lengths = [0; N];
    for (symbol, depth) in rare.into_iter().zip(depths) {
        lengths[symbol] = depth;
    }
    lengths
}

/// Shorter codes first, and by symbol among those of a length.
fn canonical<const N: usize>(lengths: &[u32; N]) -> [Symbol; N] {
    let mut symbols = [Symbol::default(); N];
    let mut code: u32 = 0;
    for count in 1..u32::BITS {
        for (symbol, _) in symbols
            .iter_mut()
            .zip(lengths)
            .filter(|(_, length)| **length == count)
        {
            *symbol = Symbol {
                bits: code.reverse_bits() >> (u32::BITS - count),
                count,
            };
            code += 1;
        }
        code <<= 1;
    }
    symbols
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How much of all bit sequences have one of the symbols at their head, in parts of 2^31.
    fn taken(symbols: &[Symbol]) -> u64 {
        symbols
            .iter()
            .filter(|s| s.count > 0)
            .map(|s| 1_u64 << (31 - s.count))
            .sum()
    }

    fn is_head(a: Symbol, b: Symbol) -> bool {
        a.count <= b.count && b.bits & ((1 << a.count) - 1) == a.bits
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // The example of RFC 1951, 3.2.2, written first bit first.
        let symbols = canonical(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let text = symbols.map(|s| {
            (0..s.count)
                .map(|i| if s.bits >> i & 1 == 1 { '1' } else { '0' })
                .collect::<String>()
        });
        assert_eq!(text, ["010", "011", "100", "101", "110", "00", "1110", "1111"]);
    }

    #[test]
    fn frequent_symbols_are_shorter() {
        let symbols = code(&[1, 1, 2, 4, 8, 16, 0, 32], 15);
        assert_eq!(symbols.map(|s| s.count), [6, 6, 5, 4, 3, 2, 0, 1]);
    }

    #[test]
    fn no_symbol_is_longer_than_allowed() {
        // Without a limit the rarest of these would have 29 bits.
        let mut counts = [1_u32; 30];
        for i in 2..30 {
            counts[i] = counts[i - 1] + counts[i - 2];
        }
        assert_eq!(lengths(&counts)[0], 29);
        for longest in 5..15 {
            let symbols = code(&counts, longest);
            assert_eq!(taken(&symbols), 1 << 31);
            assert!(
                symbols.iter().all(|s| (1..=longest).contains(&s.count)),
                "{symbols:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_symbol_starts_another_and_every_bit_is_used(
            counts in prop::array::uniform32(prop_oneof![Just(0_u32), 1_u32..9, 1_u32..1_000_000]), longest in 6_u32..15,
        ) {
            let used: Vec<usize> = (0..32).filter(|&i| counts[i] > 0).collect();
            prop_assume!(used.len() > 1);
            let symbols = code(&counts, longest);
            prop_assert_eq!(taken(&symbols), 1 << 31);
            for &a in &used {
                prop_assert!((1..=longest).contains(&symbols[a].count));
                prop_assert!(used.iter().all(|&b| a == b || !is_head(symbols[a], symbols[b])));
            }
        }
    }
}
