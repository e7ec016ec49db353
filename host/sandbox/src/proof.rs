//! What the host keeps of a compiled component beside it: which bytes they are, and which handlers they fit.

use crate::seal::Seal;

const FORMAT: &str = "pumphouse-artefact 2";

/// Handlers of one component that differ in what counts. Beyond it the oldest is found out anew.
const MOST_FITS: usize = 32;

/// Of which component, for which engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject<'a> {
    pub(crate) component: &'a str,
    pub(crate) engine: &'a str,
}

/// The artefact of a component, and what was found out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    /// SHA-256.
    pub(crate) digest: String,
    pub(crate) size: u64,
    /// For whom it was found to fit, the oldest first.
    fits: Vec<Fit>,
}

/// That a component fits a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fit {
    /// All of the handler that counts, as a digest.
    pub(crate) handler: String,
    /// It imports what would give a network.
    pub(crate) wants_network: bool,
}

impl Proof {
    pub(crate) fn new(digest: String, size: u64) -> Self {
        Self { digest, size, fits: Vec::new() }
    }

    pub(crate) fn fit(&self, handler: &str) -> Option<&Fit> {
        self.fits.iter().find(|fit| fit.handler == handler)
    }

    pub(crate) fn add(&mut self, fit: Fit) {
        self.fits.retain(|known| known.handler != fit.handler);
        if self.fits.len() >= MOST_FITS {
            self.fits.remove(0);
        }
        self.fits.push(fit);
    }

    /// As text, sealed.
    pub(crate) fn sealed(&self, subject: &Subject<'_>, seal: &Seal) -> String {
        let Subject { component, engine } = subject;
        let mut text = format!(
            "{FORMAT}\ncomponent {component}\nengine {engine}\nartefact {} {}\n",
            self.digest, self.size
        );
        for Fit { handler, wants_network } in &self.fits {
            text += &format!("fits {handler} {wants_network}\n");
        }
        let mac = seal.of(text.as_bytes());
        text + "seal " + &mac + "\n"
    }

    /// None where it is not what was sealed, or was sealed for another subject.
    pub(crate) fn open(text: &str, subject: &Subject<'_>, seal: &Seal) -> Option<Self> {
        let at = text.rfind("seal ")?;
        let (sealed, rest) = text.split_at_checked(at)?;
        if !seal.fits(sealed.as_bytes(), rest.strip_prefix("seal ")?.trim_end()) {
            return None;
        }
        let mut lines = sealed.lines();
        let ours = lines.next()? == FORMAT
            && lines.next()?.strip_prefix("component ")? == subject.component
            && lines.next()?.strip_prefix("engine ")? == subject.engine;
        let (digest, size) = lines.next()?.strip_prefix("artefact ")?.split_once(' ')?;
        let fits = lines.map(fit).collect::<Option<_>>()?;
        ours.then_some(Self { digest: digest.to_owned(), size: size.parse().ok()?, fits })
    }
}

fn fit(line: &str) -> Option<Fit> {
    let (handler, wants_network) = line.strip_prefix("fits ")?.split_once(' ')?;
    Some(Fit { handler: handler.to_owned(), wants_network: wants_network.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Subject<'_> = Subject { component: "aa", engine: "e1" };

    fn seal(home: &tempfile::TempDir, name: &str) -> Seal {
        Seal::open(&home.path().join(name)).unwrap().0
    }

    fn proof() -> Proof {
        let mut proof = Proof::new("0123".to_owned(), 7);
        proof.add(Fit { handler: "f1".to_owned(), wants_network: true });
        proof
    }

    #[test]
    fn what_was_sealed_comes_back() {
        let home = tempfile::tempdir().unwrap();
        let seal = seal(&home, "a.key");
        let text = proof().sealed(&A, &seal);
        assert_eq!(Proof::open(&text, &A, &seal), Some(proof()));
        assert!(proof().fit("f1").is_some() && proof().fit("f2").is_none());
    }

    #[test]
    fn what_was_changed_or_is_of_another_is_nothing() {
        let home = tempfile::tempdir().unwrap();
        let own = seal(&home, "a.key");
        let text = proof().sealed(&A, &own);
        for subject in [Subject { component: "bb", ..A }, Subject { engine: "e2", ..A }] {
            assert_eq!(Proof::open(&text, &subject, &own), None);
        }
        assert_eq!(Proof::open(&text, &A, &seal(&home, "b.key")), None);
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(Proof::open(&changed, &A, &own), None, "byte {at}");
            assert_eq!(Proof::open(&text[..at], &A, &own), None, "up to {at}");
        }
        // A second seal behind the first: what it covers is no proof.
        let twice = format!("{text}seal {}\n", own.of(b"other"));
        assert_eq!(Proof::open(&twice, &A, &own), None);
    }

    #[test]
    fn only_so_many_verdicts_are_kept() {
        let mut proof = proof();
        for n in 0..MOST_FITS {
            proof.add(Fit { handler: n.to_string(), wants_network: false });
        }
        assert_eq!(proof.fits.len(), MOST_FITS);
        assert!(proof.fit("f1").is_none() && proof.fit("0").is_some());
    }
}
