//! Guesses at the next tokens from what was read: an answer quotes its passages. Checked in one pass, a right guess saves as
//! many passes as it is long (Leviathan et al. 2023; looked up in the prompt as Saxena 2023).

use std::collections::HashMap;

/// Tokens that must repeat for what followed them to be guessed.
const LENGTH: usize = 2;
/// How many tokens are guessed: with the token before them they fill a tile of rows, which costs little more than a part of
/// one. Right guesses lead to longer ones, wrong ones back.
const LADDER: [usize; 3] = [1, 3, 7];

/// Where each run of tokens was last followed by others.
pub(super) struct Draft {
    /// The position behind each run of [`LENGTH`] tokens.
    behind: HashMap<[u32; LENGTH], usize>,
    /// Tokens whose runs are noted.
    noted: usize,
    /// Place on [`LADDER`].
    step: usize,
}

impl Default for Draft {
    fn default() -> Self {
        Self { behind: HashMap::new(), noted: 0, step: 1 }
    }
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
        &tokens[from..tokens.len().min(from + LADDER[self.step])]
    }

    /// Says how many of the guessed tokens were right.
    pub(super) fn learn(&mut self, guessed: usize, right: usize) {
        if guessed > 0 && right == guessed {
            self.step = (self.step + 1).min(LADDER.len() - 1);
        } else if right < guessed {
            self.step = if right == 0 { self.step.saturating_sub(1) } else { 1 };
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
        assert_eq!(draft.guess(&[1, 2, 3, 4, 5, 9, 1, 2, 3]), [4, 5, 9]);
        // The later one wins.
        assert_eq!(draft.guess(&[1, 2, 3, 4, 5, 9, 1, 2, 3, 8, 7, 1, 2, 3]), [8, 7, 1]);
    }

    #[test]
    fn guesses_get_longer_when_right_and_shorter_when_wrong() {
        let tokens: Vec<u32> = (0..40).chain(0..3).collect();
        let mut draft = Draft::default();
        let mut length = |guessed: usize, right: usize| {
            draft.learn(guessed, right);
            draft.guess(&tokens).len()
        };
        assert_eq!(length(0, 0), 3);
        assert_eq!(length(3, 3), 7);
        assert_eq!(length(7, 7), 7);
        assert_eq!(length(7, 4), 3);
        assert_eq!(length(3, 0), 1);
        assert_eq!(length(1, 0), 1);
        assert_eq!(length(1, 1), 3);
    }
}
