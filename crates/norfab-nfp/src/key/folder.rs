//! Key files in NorFab's places: the client's pair, made on first use, and the broker's public key.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{
    KeyPair, KeyTextError, PublicKey, parse_public_file, parse_secret_file, public_file_text, secret_file_text,
};
use crate::error::Error;
use crate::name::ClientName;
use crate::token::random_hex;

/// No key file has more bytes.
const MAX_FILE: u64 = 64 * 1024;

/// The folder of one client, `__norfab__/files/client/NAME`, as far as keys go: `private_keys/NAME.key_secret`,
/// `public_keys/NAME.key` and `public_keys/broker.key`.
///
/// Folders that are missing are made: the client's own and `private_keys` for their owner only, those above, which belong
/// to broker and workers as well, with the usual permissions, though never open to everybody. Folders that are there stay as they are. Key files are for
/// their owner only. (All this where the system has permissions of that kind.)
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
    name: ClientName,
}

/// Where the broker's public key may come from.
#[derive(Clone, Copy, Debug)]
pub struct BrokerKeySource<'a> {
    /// The broker's own public key file, which is there when the broker runs in the same base folder. None where the
    /// client has no base folder.
    pub broker_file: Option<&'a Path>,
    /// `broker.shared_key` of the inventory.
    pub shared_key: Option<&'a str>,
}

impl KeyFolder {
    /// The keys of the client `name` in its folder. Nothing is read or made yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, name: ClientName) -> Self {
        Self { folder: folder.into(), name }
    }

    /// The secret key file.
    #[must_use]
    pub fn secret_file(&self) -> PathBuf {
        self.folder.join("private_keys").join(format!("{}.key_secret", self.name))
    }

    /// The public key file.
    #[must_use]
    pub fn public_file(&self) -> PathBuf {
        self.folder.join("public_keys").join(format!("{}.key", self.name))
    }

    /// The client's copy of the broker's public key.
    #[must_use]
    pub fn broker_file(&self) -> PathBuf {
        self.folder.join("public_keys").join("broker.key")
    }

    /// The client's pair; made when there is none. Of several processes that do this at once all get the same pair.
    /// A missing or outdated public file is written anew from the secret one.
    ///
    /// # Errors
    /// [`Error::OwnKey`] when the secret file is malformed, [`Error::KeyFile`] when a file cannot be read or written.
    pub fn load_or_make(&self) -> Result<KeyPair, Error> {
        let secret = self.secret_file();
        let pair = match self.load(&secret)? {
            Some(pair) => pair,
            None => self.make(&secret)?,
        };
        self.write_if_other(&self.public_file(), public_file_text(&pair.public()).as_bytes(), |text| {
            parse_public_file(text) == Ok(pair.public())
        })?;
        Ok(pair)
    }

    /// The broker's public key: the broker's own file if there is one, else the inventory's key. As the Python client
    /// does, it leaves a copy in `public_keys/broker.key`; without a base folder and a key of the inventory, it is read
    /// from there, where a person may have put it.
    ///
    /// # Errors
    /// [`Error::NoBrokerKey`] when neither is there, [`Error::BrokerKeyFile`] or [`Error::SharedKey`] when it is
    /// malformed, [`Error::KeyFile`] when a file cannot be read or written.
    pub fn broker_key(&self, source: BrokerKeySource<'_>) -> Result<PublicKey, Error> {
        let copy = self.broker_file();
        let path = match (source.broker_file, source.shared_key) {
            (Some(path), _) => Some(path),
            (None, None) => Some(copy.as_path()),
            (None, Some(_)) => None,
        };
        let own = path.map(read_key_file).transpose()?.flatten();
        let path = path.unwrap_or(&copy);
        let key = match (own, source.shared_key) {
            (Some(text), _) => text
                .and_then(|text| parse_public_file(&text))
                .map_err(|source| Error::BrokerKeyFile { path: path.to_owned(), source })?,
            (None, Some(text)) => PublicKey::from_z85(text).map_err(|source| Error::SharedKey { source })?,
            (None, None) => return Err(Error::NoBrokerKey { path: path.to_owned() }),
        };
        self.write_if_other(&copy, public_file_text(&key).as_bytes(), |text| parse_public_file(text) == Ok(key))?;
        Ok(key)
    }

    fn load(&self, path: &Path) -> Result<Option<KeyPair>, Error> {
        let Some(text) = read_key_file(path)? else { return Ok(None) };
        let pair = text
            .and_then(|text| parse_secret_file(&text))
            .map_err(|source| Error::OwnKey { path: path.to_owned(), source })?;
        warn_if_readable_by_others(path);
        Ok(Some(pair))
    }

    /// Whoever is first to put a pair in place wins; everybody then reads what is there.
    fn make(&self, secret: &Path) -> Result<KeyPair, Error> {
        let pair = KeyPair::generate();
        self.make_folders()?;
        let written = write_file(secret, secret_file_text(&pair).as_bytes(), Place::Vacant)?;
        tracing::debug!(file = %secret.display(), "Made a key pair of this client");
        match written {
            Placed::Ours => Ok(pair),
            Placed::Theirs => {
                self.load(secret)?.ok_or_else(|| failed(secret, "read")(io::Error::from(io::ErrorKind::NotFound)))
            }
        }
    }

    fn write_if_other(&self, path: &Path, text: &[u8], is_same: impl FnOnce(&[u8]) -> bool) -> Result<(), Error> {
        match read_key_file(path)? {
            Some(Ok(old)) if is_same(&old) => Ok(()),
            _ => {
                self.make_folders()?;
                write_file(path, text, Place::Any).map(|_| ())
            }
        }
    }

    fn make_folders(&self) -> Result<(), Error> {
        let shared = self.folder.parent().unwrap_or(Path::new(""));
        let folders = [
            (shared, Access::Usual),
            (&self.folder, Access::OwnerOnly),
            (&self.folder.join("private_keys"), Access::OwnerOnly),
            (&self.folder.join("public_keys"), Access::Usual),
        ];
        folders.into_iter().try_for_each(|(folder, access)| make_folder(folder, access).map_err(failed(folder, "made")))
    }
}

/// Who may enter a folder that is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Whoever may by the process's umask; only owner and group may write.
    Usual,
    OwnerOnly,
}

/// Whether a file that is already there is replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Vacant,
    Any,
}

/// Whose file is in place now.
#[derive(Debug, PartialEq, Eq)]
enum Placed {
    Ours,
    Theirs,
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::KeyFile { path: path.to_owned(), action, source }
}

/// The text of a file, or why it cannot be one of a key; `None` when there is no file.
fn read_key_file(path: &Path) -> Result<Option<Result<Vec<u8>, KeyTextError>>, Error> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "read")(error)),
    };
    let mut text = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(failed(path, "read"))?;
    let fits = text.len() as u64 <= MAX_FILE;
    Ok(Some(if fits { Ok(text) } else { Err(KeyTextError::TooLarge) }))
}

/// Writes a file beside its place and then moves it there, so that nobody ever reads half of one.
fn write_file(path: &Path, text: &[u8], place: Place) -> Result<Placed, Error> {
    let temporary = path.with_extension(format!("tmp-{}", random_hex()));
    let placed = write_new(&temporary, text).and_then(|()| put_in_place(&temporary, path, place));
    if !matches!(placed, Ok(Placed::Ours)) {
        // What is left of a failed or lost attempt is of no use; that it cannot be removed is not worth an error.
        let _ = fs::remove_file(&temporary);
    }
    placed.map_err(failed(path, "written"))
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    owner_only(&mut options);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// A hard link fails when its place is taken, which a rename does not; where the file system knows no links, a rename
/// into a place that looks vacant must do.
fn put_in_place(temporary: &Path, path: &Path, place: Place) -> io::Result<Placed> {
    if place == Place::Vacant {
        match fs::hard_link(temporary, path) {
            Ok(()) => {
                fs::remove_file(temporary)?;
                return Ok(Placed::Ours);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Placed::Theirs),
            Err(_) if path.exists() => return Ok(Placed::Theirs),
            Err(_) => {}
        }
    }
    fs::rename(temporary, path).map(|()| Placed::Ours)
}

#[cfg(unix)]
fn owner_only(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
fn owner_only(_: &mut OpenOptions) {}

/// Makes a folder and those above it, all with this access; one that is there stays as it is.
fn make_folder(folder: &Path, access: Access) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    limit_folder(&mut builder, access);
    builder.create(folder)
}

#[cfg(unix)]
fn limit_folder(builder: &mut DirBuilder, access: Access) {
    use std::os::unix::fs::DirBuilderExt;
    builder.mode(match access {
        Access::Usual => 0o775,
        Access::OwnerOnly => 0o700,
    });
}

#[cfg(not(unix))]
fn limit_folder(_: &mut DirBuilder, _: Access) {}

#[cfg(unix)]
fn warn_if_readable_by_others(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(about) = fs::metadata(path)
        && about.permissions().mode() & 0o077 != 0
    {
        tracing::warn!(file = %path.display(), "Secret key file is open to others; take their permissions away");
    }
}

#[cfg(not(unix))]
fn warn_if_readable_by_others(_: &Path) {}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    const KEY: &str = ")h8YHaAR>)i#aL#-=!U[d/}bOrzG?}of}&B<Fe%>";

    fn folder(root: &Path) -> KeyFolder {
        KeyFolder::new(root.join("client").join("c1"), ClientName::new("c1").unwrap())
    }

    fn files_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_pair_is_made_once_and_then_kept() {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        let made = keys.load_or_make().unwrap();
        assert_eq!(keys.load_or_make().unwrap(), made);
        assert_eq!(parse_public_file(&fs::read(keys.public_file()).unwrap()), Ok(made.public()));
        assert_eq!(files_in(&root.path().join("client/c1/private_keys")), ["c1.key_secret"]);
        assert_eq!(files_in(&root.path().join("client/c1/public_keys")), ["c1.key"]);
    }

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// The access to what is made, whichever key comes first; `shared` stands for what the umask leaves.
    #[cfg(unix)]
    fn check_access(make: impl FnOnce(&KeyFolder)) {
        let root = tempfile::tempdir().unwrap();
        let usual = root.path().join("usual");
        fs::create_dir(&usual).unwrap();
        let shared = mode(&usual);
        let keys = KeyFolder::new(root.path().join("__norfab__/files/client/c1"), ClientName::new("c1").unwrap());
        make(&keys);
        for (path, expected) in [
            ("__norfab__", shared),
            ("__norfab__/files", shared),
            ("__norfab__/files/client", shared),
            ("__norfab__/files/client/c1", 0o700),
            ("__norfab__/files/client/c1/private_keys", 0o700),
            ("__norfab__/files/client/c1/public_keys", shared),
        ] {
            assert_eq!(mode(&root.path().join(path)), expected, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_secret() {
        check_access(|keys| {
            keys.load_or_make().unwrap();
            assert_eq!(mode(&keys.secret_file()), 0o600);
        });
    }

    #[cfg(unix)]
    #[test]
    fn folders_shared_with_the_broker_stay_open_to_it() {
        check_access(|keys| {
            keys.broker_key(BrokerKeySource { broker_file: None, shared_key: Some(KEY) })
                .unwrap_or_else(|error| panic!("{error}"));
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_there_stays_as_it_is() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        let own = root.path().join("client/c1");
        fs::create_dir_all(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
        keys.load_or_make().unwrap();
        assert_eq!((mode(&own), mode(&own.join("private_keys"))), (0o755, 0o700));
    }

    #[test]
    fn many_at_once_get_one_pair() {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        let start = Barrier::new(8);
        let pairs: Vec<KeyPair> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        keys.load_or_make().unwrap()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(pairs.iter().all(|pair| *pair == pairs[0]));
        assert_eq!(keys.load_or_make().unwrap(), pairs[0]);
        assert_eq!(files_in(&root.path().join("client/c1/private_keys")), ["c1.key_secret"]);
        assert_eq!(files_in(&root.path().join("client/c1/public_keys")), ["c1.key"]);
    }

    /// A link is followed to read, as where a secret lies in a store of its own; it is replaced, and never written through.
    #[cfg(unix)]
    #[test]
    fn no_link_leads_what_is_written_elsewhere() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let (keys, elsewhere) = (folder(root.path()), root.path().join("precious"));
        let pair = keys.load_or_make().unwrap();
        fs::write(&elsewhere, "precious").unwrap();
        for file in [keys.public_file(), keys.broker_file()] {
            let _ = fs::remove_file(&file);
            symlink(&elsewhere, &file).unwrap();
        }
        assert_eq!(keys.load_or_make().unwrap(), pair);
        keys.broker_key(BrokerKeySource { broker_file: None, shared_key: Some(KEY) }).unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
        assert!(!fs::symlink_metadata(keys.public_file()).unwrap().is_symlink());

        let store = root.path().join("store");
        fs::rename(keys.secret_file(), &store).unwrap();
        symlink(&store, keys.secret_file()).unwrap();
        assert_eq!(keys.load_or_make().unwrap(), pair, "the key is where the link leads");
        fs::remove_file(&store).unwrap();
        assert!(matches!(keys.load_or_make(), Err(Error::KeyFile { .. })), "no key is made through a link");
        assert!(!store.exists());
    }

    #[test]
    fn a_lost_public_file_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        let made = keys.load_or_make().unwrap();
        for damage in [None, Some("nonsense"), Some("public-key = \"short\"")] {
            match damage {
                None => fs::remove_file(keys.public_file()).unwrap(),
                Some(text) => fs::write(keys.public_file(), text).unwrap(),
            }
            assert_eq!(keys.load_or_make().unwrap(), made);
            assert_eq!(parse_public_file(&fs::read(keys.public_file()).unwrap()), Ok(made.public()));
        }
    }

    #[test]
    fn a_malformed_secret_is_an_error_and_stays() {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        fs::create_dir_all(keys.secret_file().parent().unwrap()).unwrap();
        for (text, problem) in [
            (String::new(), KeyTextError::NoPublicKey),
            (format!("public-key = \"{KEY}\""), KeyTextError::NoSecretKey),
            ("x".repeat(70_000), KeyTextError::TooLarge),
        ] {
            fs::write(keys.secret_file(), &text).unwrap();
            let error = keys.load_or_make().unwrap_err();
            assert!(matches!(&error, Error::OwnKey { source, .. } if *source == problem), "{error:?}");
            assert!(error.to_string().contains("c1.key_secret"), "{error}");
            assert_eq!(fs::read_to_string(keys.secret_file()).unwrap(), text);
        }
    }

    #[test]
    fn a_folder_in_the_place_of_the_file_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        fs::create_dir_all(keys.secret_file()).unwrap();
        assert!(matches!(keys.load_or_make(), Err(Error::KeyFile { .. })));
    }

    fn check_broker(own_file: Option<&str>, shared_key: Option<&str>, expected: Result<&str, &str>) {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        let broker_file = root.path().join("broker.key");
        if let Some(text) = own_file {
            fs::write(&broker_file, text).unwrap();
        }
        let found = keys.broker_key(BrokerKeySource { broker_file: Some(&broker_file), shared_key });
        match (found, expected) {
            (Ok(key), Ok(expected)) => {
                assert_eq!(key.to_z85(), expected);
                assert_eq!(parse_public_file(&fs::read(keys.broker_file()).unwrap()), Ok(key));
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn the_brokers_own_file_comes_first() {
        let own = KeyPair::generate().public();
        check_broker(Some(&public_file_text(&own)), Some(KEY), Ok(&own.to_z85()));
    }

    #[test]
    fn the_shared_key_comes_next() {
        check_broker(None, Some(KEY), Ok(KEY));
    }

    #[test]
    fn without_either_the_error_says_what_to_do() {
        check_broker(None, None, Err("broker.shared_key"));
    }

    #[test]
    fn malformed_keys_are_named() {
        check_broker(Some("nothing"), Some(KEY), Err("broker.key is malformed"));
        check_broker(None, Some("too short"), Err("shared_key in the inventory is malformed"));
    }

    #[test]
    fn a_changed_broker_key_replaces_the_copy() {
        let root = tempfile::tempdir().unwrap();
        let keys = folder(root.path());
        let nowhere = root.path().join("none");
        let other = KeyPair::generate().public().to_z85();
        for text in [KEY, &other] {
            let source = BrokerKeySource { broker_file: Some(&nowhere), shared_key: Some(text) };
            assert_eq!(keys.broker_key(source).unwrap().to_z85(), text);
            assert_eq!(parse_public_file(&fs::read(keys.broker_file()).unwrap()).unwrap().to_z85(), text);
        }
    }

    #[test]
    fn a_file_that_came_first_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("k");
        assert_eq!(write_file(&path, b"first", Place::Vacant).unwrap(), Placed::Ours);
        assert_eq!(write_file(&path, b"second", Place::Vacant).unwrap(), Placed::Theirs);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(files_in(root.path()), ["k"]);
    }
}
