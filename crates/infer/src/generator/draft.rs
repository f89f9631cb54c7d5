//! Guesses at the next tokens from what was read: an answer quotes its passages. Checked in one pass, a right guess saves as
//! many passes as it is long (Leviathan et al. 2023; looked up in the prompt as Saxena 2023).

use std::collections::HashMap;

/// Tokens that must repeat for what followed them to be guessed.
const LENGTH: usize = 3;
/// Tokens guessed at most.
const MOST: usize = 10;

/// Where each run of tokens was last followed by others.
#[derive(Default)]
pub(super) struct Draft {
    /// The position behind each run of [`LENGTH`] tokens.
    behind: HashMap<[u32; LENGTH], usize>,
    /// Tokens whose runs are noted.
    noted: usize,
    /// Tokens guessed next time: more after right guesses, fewer after wrong ones.
    length: usize,
}

impl Draft {
    /// A guess at what follows `tokens`, which grew since the last call.
    pub(super) fn guess<'a>(&mut self, tokens: &'a [u32]) -> &'a [u32] {
        // The run at the very end has nothing behind it yet.
        while self.noted + LENGTH < tokens.len() {
            self.behind.insert(run(&tokens[self.noted..]), self.noted + LENGTH);
            self.noted += 1;
        }
        if tokens.len() < LENGTH {
            return &[];
        }
        let Some(&from) = self.behind.get(&run(&tokens[tokens.len() - LENGTH..])) else { return &[] };
        let length = if self.length == 0 { MOST / 2 } else { self.length };
        &tokens[from..tokens.len().min(from + length)]
    }

    /// Says how many of the guessed tokens were right.
    pub(super) fn learn(&mut self, guessed: usize, right: usize) {
        if guessed > 0 {
            self.length = if right == guessed { (guessed + 4).min(MOST) } else { (right + 1).max(2) };
        }
    }
}

fn run(tokens: &[u32]) -> [u32; LENGTH] {
    std::array::from_fn(|index| tokens[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_the_same_run_last_is_guessed() {
        let mut draft = Draft::default();
        assert!(draft.guess(&[1, 2]).is_empty());
        assert!(draft.guess(&[1, 2, 3, 4, 5, 9]).is_empty());
        assert_eq!(draft.guess(&[1, 2, 3, 4, 5, 9, 1, 2, 3]), [4, 5, 9, 1, 2]);
        // The later one wins.
        assert_eq!(draft.guess(&[1, 2, 3, 4, 5, 9, 1, 2, 3, 8, 7, 1, 2, 3]), [8, 7, 1, 2, 3]);
    }

    #[test]
    fn guesses_get_longer_when_right_and_shorter_when_wrong() {
        let tokens: Vec<u32> = (0..40).chain(0..3).collect();
        let mut draft = Draft::default();
        assert_eq!(draft.guess(&tokens).len(), MOST / 2);
        draft.learn(5, 5);
        assert_eq!(draft.guess(&tokens).len(), 9);
        draft.learn(9, 1);
        assert_eq!(draft.guess(&tokens), [3, 4]);
        draft.learn(0, 0);
        assert_eq!(draft.guess(&tokens).len(), 2);
    }
}
