//! The kinds of checks that claims consist of. Each is a statement about rows at places (workloads
//! at thread counts); `judge::checks` defines when it is true.

use super::place::{Needs, Over, Place, Shape, Take};
use serde::{Deserialize, Serialize};

/// A statement about rows. `who` names rows of the document; if it is empty, the statement is about
/// all rows but `except`.
#[derive(Deserialize, Serialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum ClaimCheck {
    /// Each of `who` has less than each of `than`.
    Below(Against),
    /// Each of `who` has more than each of `than`.
    Above(Against),
    /// The row has the highest median of all, and its range does not touch the next one's.
    Worst {
        /// The row that must be the worst.
        who: String,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// Each of `who` is within `factor` of the best row.
    Near {
        /// The rows that the check is about; if empty, all rows but `except`.
        #[serde(default)]
        who: Vec<String>,
        /// Rows that are excluded if `who` is empty.
        #[serde(default)]
        except: Vec<String>,
        /// The largest factor over the best row; 2 is "does well".
        factor: f64,
        /// The architecture of the machines on which the check applies; without it, all machines.
        architecture: Option<String>,
        /// How many of the places have to agree.
        #[serde(default)]
        needs: Needs,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// Each of `who` is beyond `factor` of the best row.
    Far {
        /// The rows that the check is about.
        who: Vec<String>,
        /// The factor over the best row; 2 is "does badly".
        factor: f64,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// A value, or its quotient over another place or row, lies between two bounds.
    Between {
        /// The rows that the check is about; if empty, all rows but `except`.
        #[serde(default)]
        who: Vec<String>,
        /// Rows that are excluded if `who` is empty.
        #[serde(default)]
        except: Vec<String>,
        /// The lowest and the highest allowed value.
        bounds: [f64; 2],
        /// The divisor of the value.
        over: Option<Over>,
        /// Which of the values must lie between the bounds.
        #[serde(default)]
        take: Take,
        /// How many of the values must lie between the bounds, if each is tested.
        #[serde(default)]
        needs: Needs,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// With more threads, the value of each of `who` has this shape.
    OverThreads {
        /// The rows that the check is about; if empty, all rows but `except`.
        #[serde(default)]
        who: Vec<String>,
        /// Rows that are excluded if `who` is empty.
        #[serde(default)]
        except: Vec<String>,
        /// The shape of the values over thread counts.
        shape: Shape,
        /// Thread counts below this are ignored.
        #[serde(default)]
        from: u32,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// No workload takes a row more than `factor` times as much as its median workload.
    Flat {
        /// The rows that the check is about; if empty, all rows but `except`.
        #[serde(default)]
        who: Vec<String>,
        /// Rows that are excluded if `who` is empty.
        #[serde(default)]
        except: Vec<String>,
        /// The largest factor over the median.
        factor: f64,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// The slowest row is closer to the fastest than in another workload, pair by pair.
    Levels {
        /// The other workloads, in the order of the claim's workloads.
        than: Vec<String>,
        /// How many of the pairs have to agree.
        #[serde(default)]
        needs: Needs,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// Rows have much the same order as in another workload.
    Correlates {
        /// The other workload.
        with: String,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// The longest release of a tree is longer than the longest pause of a collector.
    LongestRelease {
        /// The rows that release trees.
        releases: Vec<String>,
        /// The rows with a collector.
        collects: Vec<String>,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
    /// Memory over time has the same shape on machines of another architecture.
    AlikeElsewhere {
        /// The rows that the check is about; if empty, all rows but `except`.
        #[serde(default)]
        who: Vec<String>,
        /// The column of the memory series that is compared.
        column: String,
        /// The check's places, if they are not the claim's.
        #[serde(default)]
        at: Place,
    },
}

/// A comparison of rows with other rows.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Against {
    /// The rows that the check is about.
    pub who: Vec<String>,
    /// The rows that `who` is compared with; if empty, every other row.
    #[serde(default)]
    pub than: Vec<String>,
    /// Rows that "every other" excludes.
    #[serde(default)]
    pub except: Vec<String>,
    /// How many of the comparisons have to agree.
    #[serde(default)]
    pub needs: Needs,
    /// The check's places, if they are not the claim's.
    #[serde(default)]
    pub at: Place,
}

impl ClaimCheck {
    /// The places that this check names, if it names any.
    pub fn at(&self) -> &Place {
        match self {
            ClaimCheck::Below(Against { at, .. })
            | ClaimCheck::Above(Against { at, .. })
            | ClaimCheck::Worst { at, .. }
            | ClaimCheck::Near { at, .. }
            | ClaimCheck::Far { at, .. }
            | ClaimCheck::Between { at, .. }
            | ClaimCheck::OverThreads { at, .. }
            | ClaimCheck::Flat { at, .. }
            | ClaimCheck::Levels { at, .. }
            | ClaimCheck::Correlates { at, .. }
            | ClaimCheck::LongestRelease { at, .. }
            | ClaimCheck::AlikeElsewhere { at, .. } => at,
        }
    }

    /// The rows that the check names.
    pub fn rows(&self) -> Vec<&String> {
        match self {
            ClaimCheck::Below(against) | ClaimCheck::Above(against) => against
                .who
                .iter()
                .chain(&against.than)
                .chain(&against.except)
                .collect(),
            ClaimCheck::Worst { who, .. } => vec![who],
            ClaimCheck::Far { who, .. } | ClaimCheck::AlikeElsewhere { who, .. } => {
                who.iter().collect()
            }
            ClaimCheck::Between {
                who, except, over, ..
            } => {
                let over = over.as_ref().and_then(|over| over.who.as_ref());
                who.iter().chain(except).chain(over).collect()
            }
            ClaimCheck::Near { who, except, .. }
            | ClaimCheck::OverThreads { who, except, .. }
            | ClaimCheck::Flat { who, except, .. } => who.iter().chain(except).collect(),
            ClaimCheck::Levels { .. } | ClaimCheck::Correlates { .. } => Vec::new(),
            ClaimCheck::LongestRelease {
                releases, collects, ..
            } => releases.iter().chain(collects).collect(),
        }
    }

    /// The workloads that the check names: its own, and those that it compares with.
    pub fn workloads(&self) -> Vec<&String> {
        let with = match self {
            ClaimCheck::Correlates { with, .. } => Some(with),
            _ => None,
        };
        self.at()
            .workloads
            .iter()
            .flatten()
            .chain(self.paired().into_iter().flatten())
            .chain(with)
            .collect()
    }

    /// The workloads that are paired with the check's own, one for each.
    pub fn paired(&self) -> Option<&Vec<String>> {
        match self {
            ClaimCheck::Between {
                over: Some(over), ..
            } => over.workloads.as_ref(),
            ClaimCheck::Levels { than, .. } => Some(than),
            _ => None,
        }
    }
}
