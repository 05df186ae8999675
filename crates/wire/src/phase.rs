//! Where a measured process stands. It outlives a crash in the shared page, so the host can say in which phase it was.

/// The phases of a guest, in the order it goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Not yet in the guest's own code: the dynamic linker and the allocator's constructors.
    Load = 0,
    /// Finding out who serves the malloc family.
    Prove = 1,
    /// Tables, threads: before the first measured operation.
    Setup = 2,
    /// Warm-up iterations.
    Cold = 3,
    /// Measured iterations.
    Run = 4,
    /// After the clock, with nothing done since: what the process still holds.
    After = 5,
    /// Checks that the allocator still hands out sound blocks, its own ones.
    Verify = 6,
    /// The report is complete.
    Done = 7,
}

impl Phase {
    const ALL: [Phase; 8] =
        [Phase::Load, Phase::Prove, Phase::Setup, Phase::Cold, Phase::Run, Phase::After, Phase::Verify, Phase::Done];

    /// The phase with this number; a number that no guest writes reads as [`Phase::Load`].
    pub fn from_number(number: u32) -> Phase {
        *Phase::ALL.get(number as usize).unwrap_or(&Phase::Load)
    }

    /// The phase that records call this.
    pub fn from_word(word: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.word() == word)
    }

    /// Whether what the process holds is the workload's, and not that of heapmark's own proofs and checks.
    pub fn is_of_workload(self) -> bool {
        matches!(self, Phase::Setup | Phase::Cold | Phase::Run | Phase::After)
    }

    /// Its name in records.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Prove => "prove",
            Phase::Setup => "setup",
            Phase::Cold => "cold",
            Phase::Run => "run",
            Phase::After => "after",
            Phase::Verify => "verify",
            Phase::Done => "done",
        }
    }
}
