//! The command line.

pub(crate) const USAGE: &str =
    "usage: pumphouse-bench [sandbox|fairness|compile|many|pump|sqs|pubsub|rocketmq] [--quick] [--json] [--strict]

  Without a name: all but `many`, which takes minutes and gigabytes.

  --quick    a tenth of the work: whether it runs, not how fast
  --json     one JSON document instead of a table
  --strict   exit status 1 where a target is missed
";

/// What is measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Sandbox,
    Fairness,
    Compile,
    Many,
    Pump,
    Sqs,
    Pubsub,
    Rocketmq,
}

impl Group {
    const ALL: [Self; 8] = [
        Self::Sandbox,
        Self::Fairness,
        Self::Compile,
        Self::Many,
        Self::Pump,
        Self::Sqs,
        Self::Pubsub,
        Self::Rocketmq,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Fairness => "fairness",
            Self::Compile => "compile",
            Self::Many => "many",
            Self::Pump => "pump",
            Self::Sqs => "sqs",
            Self::Pubsub => "pubsub",
            Self::Rocketmq => "rocketmq",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Options {
    only: Option<Group>,
    pub(crate) quick: bool,
    pub(crate) json: bool,
    pub(crate) strict: bool,
}

impl Options {
    /// None where the arguments mean nothing.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--strict" => options.strict = true,
                name if options.only.is_none() => {
                    options.only = Some(Group::ALL.into_iter().find(|group| group.name() == name)?);
                }
                _ => return None,
            }
        }
        Some(options)
    }

    pub(crate) fn groups(&self) -> Vec<Group> {
        let all = || Group::ALL.into_iter().filter(|group| *group != Group::Many).collect();
        self.only.map_or_else(all, |only| vec![only])
    }

    /// So much of the work as was asked for; at least 1.
    pub(crate) fn scaled(&self, work: usize) -> usize {
        if self.quick { work.div_ceil(10) } else { work }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Option<Options> {
        Options::parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn one_group_or_all_of_them() {
        assert_eq!(parse(&["pump"]).map(|o| o.groups()), Some(vec![Group::Pump]));
        assert_eq!(parse(&["--json"]).map(|o| o.groups().len()), Some(7));
        assert_eq!(parse(&["many"]).map(|o| o.groups()), Some(vec![Group::Many]));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for arguments in [&["pumps"][..], &["pump", "sqs"], &["--fast"]] {
            assert_eq!(parse(arguments), None, "{arguments:?}");
        }
    }
}
