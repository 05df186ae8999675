//! Chains of routines, defined by their names. Each word is one step over all objects of a worker.

/// The twelve chains in the document's order. The other order of the last chain,
/// malloc-calloc-realloc-free, is a valid chain, too.
pub const DOCUMENT: [&str; 12] = [
    "malloc",
    "realloc",
    "free",
    "calloc",
    "malloc-free",
    "realloc-free",
    "calloc-free",
    "malloc-realloc",
    "calloc-realloc",
    "malloc-realloc-free",
    "calloc-realloc-free",
    "malloc-realloc-free-calloc",
];

/// Maximum number of steps in a chain.
const MOST_STEPS: usize = 4;

/// Number of lists of sizes that a worker draws: for first objects, for realloc, for a second set
/// of objects.
pub const DRAWS: usize = 3;
/// Index of the list of sizes that realloc uses.
pub const REALLOC_DRAW: usize = 1;

/// Number of sets of objects that a worker has at a time.
pub const SETS: usize = 2;

/// One routine, called for each object of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Malloc,
    Calloc,
    Realloc,
    Free,
}

/// A routine with the set and the list of sizes it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainStep {
    pub call: Call,
    pub set: usize,
    pub draw: usize,
}

impl ChainStep {
    /// Allocates the objects for a chain that begins with realloc or free.
    pub const FILL: ChainStep = ChainStep {
        call: Call::Malloc,
        set: 0,
        draw: 0,
    };

    /// Frees a set.
    pub const fn free(set: usize) -> ChainStep {
        ChainStep {
            call: Call::Free,
            set,
            draw: 0,
        }
    }
}

/// A worker's actions on its objects before, on and after the clock.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'n> {
    pub name: &'n str,
    steps: [Option<ChainStep>; MOST_STEPS],
    /// Whether the chain needs objects before it starts.
    pub fills: bool,
    /// Sets that are freed after the clock has stopped.
    pub frees: [bool; SETS],
    /// Sets that exist before and after the chain, if chains hand their objects on.
    found: [bool; SETS],
    left: [bool; SETS],
}

impl<'n> Chain<'n> {
    /// Parses a chain's name. Returns `None` if a word is not a routine, or if there are too many
    /// words.
    pub fn parse(name: &'n str) -> Option<Chain<'n>> {
        let first = name.split('-').next()?;
        let found = [matches!(first, "realloc" | "free"), false];
        let mut live = found;
        let mut steps = [None; MOST_STEPS];
        for (index, word) in name.split('-').enumerate() {
            let step = match word {
                "malloc" | "calloc" => {
                    let call = match word {
                        "malloc" => Call::Malloc,
                        _ => Call::Calloc,
                    };
                    // Objects that are still live stay: a second set with sizes of its own is
                    // added. New objects after a free have sizes of their own, too.
                    let set = usize::from(live[0]);
                    live[set] = true;
                    ChainStep {
                        call,
                        set,
                        draw: if index == 0 { 0 } else { DRAWS - 1 },
                    }
                }
                "realloc" => ChainStep {
                    call: Call::Realloc,
                    set: 0,
                    draw: REALLOC_DRAW,
                },
                "free" => {
                    live[0] = false;
                    ChainStep::free(0)
                }
                _ => return None,
            };
            *steps.get_mut(index)? = Some(step);
        }
        Some(Chain {
            name,
            steps,
            fills: found[0],
            frees: live,
            found,
            left: live,
        })
    }

    /// Returns the steps on the clock.
    pub fn steps(&self) -> impl Iterator<Item = ChainStep> {
        self.steps.into_iter().flatten()
    }

    /// Returns the sets that are freed after the clock has stopped.
    pub fn freed_sets(&self) -> impl Iterator<Item = usize> {
        let frees = self.frees;
        (0..SETS).filter(move |set| frees[*set])
    }

    /// Lets this chain use the objects that `previous` leaves, if this chain needs exactly those.
    pub fn carry_over_from(&mut self, previous: &mut Chain<'_>) {
        if self.found != [false; SETS] && self.found == previous.left {
            self.fills = false;
            previous.frees = [false; SETS];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are(name: &str, expected: [(Call, usize, usize); 4]) -> bool {
        Chain::parse(name)
            .unwrap()
            .steps()
            .map(|step| (step.call, step.set, step.draw))
            .eq(expected)
    }

    #[test]
    fn chains_do_what_they_must_before_and_after_the_clock() {
        let around = |name| {
            let chain = Chain::parse(name).unwrap();
            (chain.fills, chain.frees[0])
        };
        let expected = [
            (false, true),
            (true, true),
            (true, false),
            (false, true),
            (false, false),
            (true, false),
            (false, false),
            (false, true),
            (false, true),
            (false, false),
            (false, false),
            (false, true),
        ];
        assert_eq!(DOCUMENT.map(around), expected);
    }

    #[test]
    fn the_last_chain_allocates_afresh_and_its_other_order_a_second_set() {
        let last = [
            (Call::Malloc, 0, 0),
            (Call::Realloc, 0, 1),
            (Call::Free, 0, 0),
            (Call::Calloc, 0, 2),
        ];
        assert!(are("malloc-realloc-free-calloc", last));
        let other = [
            (Call::Malloc, 0, 0),
            (Call::Calloc, 1, 2),
            (Call::Realloc, 0, 1),
            (Call::Free, 0, 0),
        ];
        assert!(are("malloc-calloc-realloc-free", other));
        assert_eq!(
            Chain::parse("malloc-calloc-realloc-free").unwrap().frees,
            [false, true]
        );
    }

    #[test]
    fn words_that_are_no_routine_make_no_chain() {
        assert!(Chain::parse("malloc-fre").is_none());
        assert!(Chain::parse("").is_none());
        assert!(Chain::parse("malloc-free-malloc-free-malloc").is_none());
    }

    #[test]
    fn only_malloc_realloc_and_free_carry_over() {
        let mut chains = DOCUMENT.map(|name| Chain::parse(name).unwrap());
        for index in 1..chains.len() {
            let (before, rest) = chains.split_at_mut(index);
            rest[0].carry_over_from(&mut before[index - 1]);
        }
        let around = chains.map(|chain| (chain.fills, chain.frees[0]));
        assert_eq!(
            around[..5],
            [
                (false, false),
                (false, false),
                (false, false),
                (false, true),
                (false, false)
            ]
        );
        assert!(
            chains[5].fills,
            "realloc-free finds nothing after malloc-free"
        );
    }
}
