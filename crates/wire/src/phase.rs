//! The phase of a measured process. It survives a crash in the shared page, so the host can report
//! in which phase it happened.

/// The phases of a guest, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Not yet in the guest's own code: the dynamic linker and the allocator's constructors.
    Load = 0,
    /// Finds which library serves the malloc family.
    Prove = 1,
    /// Tables, threads: before the first measured operation.
    Setup = 2,
    /// Warm-up iterations.
    Cold = 3,
    /// Measured iterations.
    Run = 4,
    /// After the clock has stopped, before any other work: what the process still holds.
    After = 5,
    /// Checks, with the guest's own blocks, that the allocator still hands out sound ones.
    Verify = 6,
    /// The report is complete.
    Done = 7,
}

impl Phase {
    const ALL: [Phase; 8] = [
        Phase::Load,
        Phase::Prove,
        Phase::Setup,
        Phase::Cold,
        Phase::Run,
        Phase::After,
        Phase::Verify,
        Phase::Done,
    ];

    /// The phase with this number; a number that no guest writes is read as [`Phase::Load`].
    pub fn from_number(number: u32) -> Phase {
        *Phase::ALL.get(number as usize).unwrap_or(&Phase::Load)
    }

    /// The phase with this name in records.
    pub fn from_word(word: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.word() == word)
    }

    /// Whether the memory of the process belongs to the workload, and not to heapmark's own proofs
    /// and checks.
    pub fn is_of_workload(self) -> bool {
        matches!(self, Phase::Setup | Phase::Cold | Phase::Run | Phase::After)
    }

    /// The phase's name in records.
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
