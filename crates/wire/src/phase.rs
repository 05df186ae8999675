//! The phase of a measured process. It survives a crash in the shared page, so the host can report
//! in which phase it happened.

/// The phases of a guest, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// The dynamic linker and the allocator's constructors run, before the guest's own code.
    Load = 0,
    /// The guest finds which library serves the malloc family.
    Prove = 1,
    /// Tables and threads are set up, before the first measured operation.
    Setup = 2,
    /// Warm-up iterations.
    Cold = 3,
    /// Measured iterations.
    Run = 4,
    /// The clock has stopped, and what the process still holds is read before any other work.
    After = 5,
    /// The guest checks, with blocks of its own, that the allocator still hands out sound ones.
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
