//! Builds a client: where its database lies, how the broker is reached, what runs behind it. All wiring is here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use norfab_dispatch::Config;
use norfab_model::{Json, Limits};
use norfab_nfp::{BrokerKeySource, ClientName, Endpoint, KeyFolder, NfpBroker};
use norfab_store::{Access, Codec, CodecChoice, Durability, MemoryStore, SqliteStore, StoreOptions};

use crate::client::Parts;
use crate::guest::Guest;
use crate::home::Home;
use crate::inventory::{BrokerAddress, Security, read_forbidden_tasks, read_inventory};
use crate::owner::{HolderKind, LockError, OwnerLock};
use crate::{Client, ClientError, InventoryError, SystemClock};

/// What a client does besides adding and reading jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// It dispatches all jobs of the database, and is the only process that does.
    #[default]
    Owner,
    /// It dispatches the jobs that it adds itself, while nobody owns the database; beside an owner it watches them.
    Guest,
    /// It never dispatches: jobs that it adds wait for an owner.
    Beside,
    /// It never changes anything.
    ReadOnly,
}

/// Builds a [`Client`]. Give a NorFab folder, or a database of its own and the broker's address.
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    folder: Option<PathBuf>,
    database: Option<PathBuf>,
    name: String,
    endpoint: Option<String>,
    security: Option<Security>,
    role: Role,
    limits: Limits,
    dispatch: Config,
    connect_timeout: Duration,
    durability: Durability,
}

/// The client's name when none is given.
pub const DEFAULT_NAME: &str = "norfab";

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            folder: None,
            database: None,
            name: DEFAULT_NAME.to_owned(),
            endpoint: None,
            security: None,
            role: Role::default(),
            limits: Limits::default(),
            dispatch: Config::default(),
            connect_timeout: Duration::from_secs(5),
            durability: Durability::Full,
        }
    }
}

impl ClientBuilder {
    /// The NorFab folder: the one that holds `inventory.yaml`. The database and the keys lie below its `__norfab__`, and
    /// the tasks that its inventory forbids are forbidden besides those of the limits, see [`read_forbidden_tasks`].
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// A database at a path of its own; with CURVE the client's keys lie beside it.
    #[must_use]
    pub fn database(mut self, path: impl Into<PathBuf>) -> Self {
        self.database = Some(path.into());
        self
    }

    /// The client's name, `norfab` if none is given. The broker knows one connection of a name: a Python client of the
    /// same name must not run at the same time.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The broker's endpoint, instead of the inventory's.
    #[must_use]
    pub fn endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.endpoint = Some(endpoint.into());
        self
    }

    /// How the connection is protected, instead of what the inventory says.
    #[must_use]
    pub fn security(mut self, security: Security) -> Self {
        self.security = Some(security);
        self
    }

    /// What it does. Default [`Role::Owner`].
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// The bounds of what may be asked for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The dispatcher's numbers. Its scope is set by the role.
    #[must_use]
    pub fn dispatch(mut self, config: Config) -> Self {
        self.dispatch = config;
        self
    }

    /// How long a guest tries to reach the fabric before it gives its unsent jobs up. Default 5 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// When a commit counts as done. Default [`Durability::Full`]: what was acknowledged survives a power cut.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Where the database lies.
    ///
    /// # Errors
    /// [`ClientError::NoPlace`] when neither a folder nor a database was given, [`ClientError::Nfp`] for a name that
    /// cannot be one.
    pub fn database_path(&self) -> Result<PathBuf, ClientError> {
        let name = ClientName::new(self.name.as_str())?;
        match (&self.database, &self.folder) {
            (Some(path), _) => Ok(path.clone()),
            (None, Some(folder)) => Ok(client_folder(folder, &name).join(format!("{name}.db"))),
            (None, None) => Err(ClientError::NoPlace),
        }
    }

    /// Opens the database and starts what belongs to the role. An owner waits for a guest to end. What an owner and a guest
    /// run has a thread of its own, which may wait for the disk; the caller's runtime is not kept waiting by it.
    ///
    /// # Errors
    /// [`ClientError`]: nothing was started then.
    pub async fn build(mut self) -> Result<Client, ClientError> {
        let path = self.database_path()?;
        if let (Some(folder), false) = (&self.folder, self.role == Role::ReadOnly) {
            self.limits.forbidden_tasks.extend(read_forbidden_tasks(folder)?);
        }
        let address = Address::of(&self)?;
        if matches!(self.role, Role::Owner | Role::Guest) {
            // Said now rather than after a job was added.
            address.resolve()?;
        }
        if self.role != Role::ReadOnly {
            make_parent(&path)?;
        }
        let lock = match self.role {
            Role::Owner => Some(take_lock(&path).await?),
            Role::Guest | Role::Beside | Role::ReadOnly => None,
        };
        let store = SqliteStore::open(&path, &self.store_options()).await?;
        let guest = (self.role == Role::Guest).then(|| Arc::new(Guest::new(path, self.connect_timeout)));
        let name = self.name.clone();
        let connect = Arc::new(move |name: &str| address.connect(name));
        let home = match self.role {
            Role::Owner | Role::Guest => Home::start(store.working_here()).map_err(ClientError::Thread)?,
            Role::Beside | Role::ReadOnly => Home::of_caller(Arc::new(store.clone())),
        };
        let parts = Parts {
            store: Arc::new(store),
            home,
            clock: SystemClock,
            limits: self.limits,
            name: name.clone(),
            connect: Some(connect.clone() as _),
        };
        let client = Client::assemble(parts, guest);
        match lock {
            Some(lock) => {
                let broker = {
                    let _home = client.shared().home.enter();
                    connect(&name)?
                };
                client.dispatch(broker, self.dispatch, Some(lock));
            }
            None => client.look_on(&self.dispatch),
        }
        Ok(client)
    }

    /// Asks the broker itself, as [`Client::mmi`] does, without opening or making a database. The connection has another
    /// name than the client's, so that it cuts nobody off.
    ///
    /// # Errors
    /// As [`Client::mmi`].
    pub async fn ask_broker(self, task: &str, kwargs: Json, timeout: Duration) -> Result<Json, ClientError> {
        let address = Address::of(&self)?;
        let store = Arc::new(MemoryStore::new());
        let parts = Parts {
            home: Home::of_caller(Arc::clone(&store)),
            store,
            clock: SystemClock,
            limits: self.limits,
            name: self.name,
            connect: Some(Arc::new(move |name: &str| address.connect(name)) as _),
        };
        let client: Client<MemoryStore> = Client::assemble(parts, None);
        client.mmi(task, kwargs, timeout).await
    }

    /// In NorFab's layout the Python client may open the database too, and it reads zlib only.
    fn store_options(&self) -> StoreOptions {
        let codec = if self.database.is_some() { Codec::Lz4 } else { Codec::Zlib };
        let access = if self.role == Role::ReadOnly { Access::ReadOnly } else { Access::Write };
        StoreOptions {
            access,
            codec: CodecChoice::IfNew(codec),
            durability: self.durability,
            ..StoreOptions::default()
        }
    }
}

/// Takes the lock for good; a guest is waited for, since it ends by itself.
async fn take_lock(database: &Path) -> Result<OwnerLock, ClientError> {
    let mut said = false;
    let mut looks = 0;
    loop {
        match OwnerLock::take(database, HolderKind::Owner) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Io(path, source)) => return Err(ClientError::Io { path, source }),
            Err(LockError::Held { lock, holder }) => match holder {
                Some(holder) if holder.kind == HolderKind::Guest => {
                    if !said {
                        tracing::info!(
                            pid = holder.pid,
                            "Waits for a command that serves its own jobs on this database"
                        );
                        said = true;
                    }
                }
                // Taken or let go a moment ago, or only looked at: who holds it will be known soon.
                _ if looks < 5 => looks += 1,
                holder => return Err(ClientError::Owned { lock, holder }),
            },
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Makes the folder of the database, where it is missing, for its owner only; those above it, which others share, are never
/// open to everybody.
fn make_parent(path: &Path) -> Result<(), ClientError> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    let above = parent.parent().filter(|above| !above.as_os_str().is_empty());
    let made = above.map_or(Ok(()), |above| make_folder(above, 0o775)).and_then(|()| make_folder(parent, 0o700));
    made.map_err(|source| ClientError::Io { path: parent.to_owned(), source })
}

/// Makes a folder and those above it; `mode` is cut by the process's umask, where the system has permissions of that kind.
fn make_folder(folder: &Path, mode: u32) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(not(unix))]
    let _ = mode;
    builder.create(folder)
}

fn client_folder(folder: &Path, name: &ClientName) -> PathBuf {
    folder.join("__norfab__").join("files").join("client").join(name.as_str())
}

/// The broker's own public key, where broker and client share a folder.
fn broker_key_file(folder: &Path) -> PathBuf {
    folder.join("__norfab__").join("files").join("broker").join("public_keys").join("broker.key")
}

/// Everything that a connection to the broker needs, looked up when it is made.
#[derive(Debug, Clone)]
struct Address {
    folder: Option<PathBuf>,
    keys: KeyFolder,
    endpoint: Option<String>,
    security: Option<Security>,
}

impl Address {
    fn of(builder: &ClientBuilder) -> Result<Self, ClientError> {
        let name = ClientName::new(builder.name.as_str())?;
        let keys = match (&builder.database, &builder.folder) {
            (Some(path), _) => path.parent().unwrap_or(Path::new("")).to_owned(),
            (None, Some(folder)) => client_folder(folder, &name),
            (None, None) => return Err(ClientError::NoPlace),
        };
        Ok(Self {
            folder: builder.folder.clone(),
            keys: KeyFolder::new(keys, name),
            endpoint: builder.endpoint.clone(),
            security: builder.security.clone(),
        })
    }

    /// What was given goes before the inventory, which is not needed when everything was given.
    fn resolve(&self) -> Result<BrokerAddress, ClientError> {
        if let (Some(endpoint), Some(security)) = (&self.endpoint, &self.security) {
            return Ok(BrokerAddress { endpoint: endpoint.clone(), security: security.clone() });
        }
        let inventory = match self.folder.as_deref().map(read_inventory) {
            Some(Ok(inventory)) => Some(inventory),
            Some(Err(InventoryError::Read { source, .. }))
                if self.endpoint.is_some() && source.kind() == std::io::ErrorKind::NotFound =>
            {
                None
            }
            Some(Err(error)) => return Err(error.into()),
            None => None,
        };
        let endpoint = self.endpoint.clone().or_else(|| inventory.as_ref().map(|found| found.endpoint.clone()));
        let security = self.security.clone().or_else(|| inventory.map(|found| found.security));
        Ok(BrokerAddress {
            endpoint: endpoint.ok_or(ClientError::NoBroker)?,
            security: security.unwrap_or(Security::Plain),
        })
    }

    fn connect(&self, name: &str) -> Result<NfpBroker, ClientError> {
        let address = self.resolve()?;
        let endpoint = Endpoint::parse(&address.endpoint)?;
        let security = match &address.security {
            Security::Plain => norfab_nfp::Security::Plain,
            Security::Curve { shared_key } => {
                let broker_file = self.folder.as_deref().map(broker_key_file);
                let source = BrokerKeySource { broker_file: broker_file.as_deref(), shared_key: shared_key.as_deref() };
                let broker = self.keys.broker_key(source)?;
                norfab_nfp::Security::Curve { keys: self.keys.load_or_make()?, broker }
            }
        };
        Ok(NfpBroker::connect(endpoint, &ClientName::new(name)?, security)?)
    }
}

/// Connects to a broker without CURVE, for a client over ports of one's own ([`Client::from_ports`]).
///
/// # Errors
/// [`ClientError::Nfp`] for a name or an endpoint that cannot be one, or outside a tokio runtime. A broker that cannot be
/// reached is no error: the connection is tried again and again.
pub fn connect_plain(endpoint: &str, name: &str) -> Result<NfpBroker, ClientError> {
    let (endpoint, name) = (Endpoint::parse(endpoint)?, ClientName::new(name)?);
    Ok(NfpBroker::connect(endpoint, &name, norfab_nfp::Security::Plain)?)
}
