//! The address of a server and the access to it: arguments, TLS, and connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use redis::{
    Client, ClientTlsConfig, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError, TlsCertificates,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::{self, Given};
use super::texts;
use crate::failure::Failure;

/// Arguments of commands that speak to one server or cluster.
#[derive(Debug, Clone, Args)]
pub struct Url {
    /// The server's address: [redis://][user[:password]@]host[:port][/db], rediss:// for TLS, redis+unix:///path for a
    /// socket
    #[arg(long, env = "ROLLCALL_URL", default_value = "redis://127.0.0.1:6379", hide_env_values = true)]
    pub url: String,

    #[command(flatten)]
    pub access: Access,
}

/// The credentials for a server, whatever its address.
#[derive(Debug, Clone, Args)]
pub struct Access {
    /// The password, if the URL has none. Unlike an argument, the environment variable is hidden from other users of
    /// this machine
    #[arg(long, env = "ROLLCALL_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,

    /// The server is a node of a cluster: work with all its nodes
    #[arg(long)]
    pub cluster: bool,

    #[command(flatten)]
    pub tls: Tls,

    /// The names of these arguments, for advice.
    #[arg(skip)]
    pub given: Given,
}

impl Access {
    /// The access to one of the URLs of a command. Files of TLS are for those with TLS, if there are any.
    pub fn of(&self, url: &str, all: &[&str]) -> Access {
        let mut access = self.clone();
        if !is_tls(url) && all.iter().any(|other| is_tls(other)) {
            access.tls = Tls { timeout: self.tls.timeout, cacert: None, cert: None, key: None, insecure: false };
        }
        access
    }
}

/// Files of TLS, and how long to wait.
#[derive(Debug, Clone, Args)]
pub struct Tls {
    /// A PEM file with the certificate authorities to trust, instead of the system's
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// A PEM file with the client certificate to present to the server
    #[arg(long, value_name = "FILE", requires = "key_file")]
    cert: Option<PathBuf>,

    /// A PEM file with the private key of the client certificate
    #[arg(long = "key", id = "key_file", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Do not verify the server's TLS certificate
    #[arg(long)]
    insecure: bool,

    /// Seconds to wait for a connection or a reply [default: 60; nodes, exporter, dashboard, live top: 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: Option<u64>,
}

/// The address of a server, with everything needed to connect to it and to other nodes of its cluster.
#[derive(Debug, Clone)]
pub struct Address {
    info: ConnectionInfo,
    login: Login,
    given: Given,
    db: i64,
    certificates: Option<TlsCertificates>,
    /// The timeout that the user asked for; `None` for [`Address::patience`].
    timeout: Option<Duration>,
    /// The timeout if the user asked for none.
    patience: Duration,
}

/// The credentials to authenticate with.
#[derive(Clone)]
struct Login {
    user: Option<String>,
    password: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The default timeout.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit of the TLS handshake. When it has passed, the tool checks whether the server speaks without TLS.
const TLS_PATIENCE: Duration = Duration::from_secs(3);

impl Address {
    /// Reads a URL and the files that `access` names.
    pub fn new(url: &str, access: &Access) -> Result<Self, Failure> {
        let wrong = |reason: String| {
            Failure::arguments(reason)
                .advise("a URL is redis://user:password@host:6379/0, rediss://... or redis+unix:///path")
        };
        // The client ignores a query, except in the URL of a socket, and with it the database that it names.
        let url = with_scheme(url);
        let is_socket = url.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("unix"));
        if url.contains('?') && !is_socket {
            let text = "the URL of the server has options after ?, which are not read; a database is its path, as /2";
            return Err(wrong(text.to_owned()));
        }
        let info = url
            .into_connection_info()
            .map_err(|error| wrong(format!("the URL of the server cannot be read: {error}")))?;
        // RESP2 is requested because every server supports it, and replies then have the same form everywhere.
        let asked = info.redis_settings().clone();
        let settings = RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP2).set_skip_set_lib_name();
        let mut info = info.set_redis_settings(settings);
        let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let asks_tls = access.tls.insecure || access.tls.cacert.is_some() || access.tls.cert.is_some();
        if asks_tls && !is_tls {
            return Err(wrong("--cacert, --cert, --key and --insecure are for TLS, and the URL is not".to_owned()));
        }
        if let ConnectionAddr::TcpTls { insecure, .. } = info.addr() {
            let insecure = *insecure || access.tls.insecure;
            let addr = info.addr().clone();
            info = info.set_addr(with_insecure(addr, insecure));
        }
        let certificates = is_tls.then(|| access.tls.certificates()).transpose()?;
        let login = Login {
            user: asked.username().filter(|user| !user.is_empty()).map(str::to_owned),
            password: asked.password().map(str::to_owned).or_else(|| access.password.clone()),
        };
        let timeout = access.tls.timeout.map(Duration::from_secs);
        Ok(Address { info, login, given: access.given, db: asked.db(), certificates, timeout, patience: PATIENCE })
    }

    /// Sets the timeout for users who asked for none.
    pub fn patient(self, patience: Duration) -> Self {
        Address { patience, ..self }
    }

    /// How long to wait for a connection or a reply.
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(self.patience)
    }

    /// The address for display: host and port or the path of a socket, and the database unless it is 0. It has no
    /// password.
    pub fn name(&self) -> String {
        match self.db {
            0 => self.info.addr().to_string(),
            db => format!("{}/{db}", self.info.addr()),
        }
    }

    /// The names by which the user gives the server.
    pub fn given(&self) -> Given {
        self.given
    }

    /// Whether connections use TLS.
    pub fn is_tls(&self) -> bool {
        self.certificates.is_some()
    }

    /// The address as a URL, without user and password.
    pub fn url(&self) -> String {
        let db = if self.db == 0 { String::new() } else { format!("/{}", self.db) };
        let host = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match self.info.addr() {
            ConnectionAddr::Tcp(name, port) => format!("redis://{}:{port}{db}", host(name)),
            ConnectionAddr::TcpTls { host: name, port, .. } => format!("rediss://{}:{port}{db}", host(name)),
            ConnectionAddr::Unix(path) => format!("redis+unix://{}?db={}", path.display(), self.db),
            _ => self.name(),
        }
    }

    /// The address of another node of the same cluster. An empty `host` stands for the host of this address.
    pub fn node(&self, host: &str, port: u16) -> Self {
        let addr = match self.info.addr() {
            ConnectionAddr::TcpTls { host: own, insecure, tls_params, .. } => with_insecure(
                ConnectionAddr::TcpTls {
                    host: if host.is_empty() { own.clone() } else { host.to_owned() },
                    port,
                    insecure: *insecure,
                    tls_params: tls_params.clone(),
                },
                *insecure,
            ),
            ConnectionAddr::Tcp(own, _) => {
                ConnectionAddr::Tcp(if host.is_empty() { own.clone() } else { host.to_owned() }, port)
            }
            _ => ConnectionAddr::Tcp(if host.is_empty() { "127.0.0.1".to_owned() } else { host.to_owned() }, port),
        };
        let given = Given { url: None, ..self.given };
        Address { info: self.info.clone().set_addr(addr), given, ..self.clone() }
    }

    /// Opens a connection, authenticates, and selects the database.
    pub fn connect(&self) -> Result<Connection, Failure> {
        let failed = |problem: &RedisError| error::connecting(&self.name(), self.given, self.timeout(), problem);
        let is_tls = self.is_tls();
        let first = if is_tls { self.timeout().min(TLS_PATIENCE) } else { self.timeout() };
        match self.attempt(first) {
            // A server without TLS waits for the end of a line that the TLS handshake never sends, so the handshake
            // times out.
            Err(problem) if is_tls && problem.is_timeout() => {
                if self.speaks_plainly() {
                    return Err(Failure::new(format!("cannot connect to {}: it speaks without TLS", self.name()))
                        .advise("a URL of redis:// is without TLS, one of rediss:// with it"));
                }
                match self.timeout() > first {
                    true => self.attempt(self.timeout()).map_err(|problem| failed(&problem)),
                    false => Err(failed(&problem)),
                }
            }
            outcome => outcome.map_err(|problem| failed(&problem)),
        }
    }

    /// Connects, and fails after `patience`.
    fn attempt(&self, patience: Duration) -> Result<Connection, RedisError> {
        let client = match &self.certificates {
            Some(certificates) => {
                // Installing fails if a provider was installed before. Only this provider is ever installed, so the
                // error is ignored.
                let _ = rustls::crypto::ring::default_provider().install_default();
                Client::build_with_tls(self.info.clone(), certificates.clone())
            }
            None => Client::open(self.info.clone()),
        };
        let mut connection = client?.get_connection_with_timeout(patience)?;
        connection.set_write_timeout(Some(patience))?;
        connection.set_read_timeout(Some(patience))?;
        self.let_in(&mut connection)?;
        connection.set_write_timeout(Some(self.timeout()))?;
        connection.set_read_timeout(Some(self.timeout()))?;
        Ok(connection)
    }

    /// Whether the server answers without TLS.
    fn speaks_plainly(&self) -> bool {
        let ConnectionAddr::TcpTls { host, port, .. } = self.info.addr() else { return false };
        let answer = |address: SocketAddr| {
            let mut stream = TcpStream::connect_timeout(&address, TLS_PATIENCE)?;
            stream.set_read_timeout(Some(TLS_PATIENCE))?;
            stream.write_all(b"PING\r\n")?;
            let mut first = [0];
            stream.read_exact(&mut first).map(|()| first[0])
        };
        let addresses = (host.as_str(), *port).to_socket_addrs().into_iter().flatten();
        addresses.take(1).any(|address| matches!(answer(address), std::io::Result::Ok(b'+' | b'-')))
    }

    /// Authenticates, selects the database, and asks the server not to count the tool's commands as uses of the keys,
    /// by which it chooses keys to evict. The TLS handshake takes place with the first of these commands.
    fn let_in(&self, connection: &mut Connection) -> Result<(), RedisError> {
        let mut ask = |command: &redis::Cmd| {
            connection.send_packed_command(&command.get_packed_command())?;
            connection.recv_response()
        };
        if let Some(password) = &self.login.password {
            ask(redis::cmd("AUTH").arg(&self.login.user).arg(password))?.extract_error()?;
        }
        if self.db != 0 {
            ask(redis::cmd("SELECT").arg(self.db))?.extract_error()?;
        }
        // Redis 7.0 lacks the command, and the user may lack the permission. Any other reply shows that the server
        // answers.
        let reply = ask(redis::cmd("CLIENT").arg("NO-TOUCH").arg("ON"))?;
        match error::text_of(&reply) {
            Some(text) if texts::is_rejected_connection(&text) => reply.extract_error().map(drop),
            _ => Ok(()),
        }
    }
}

/// Whether a URL asks for TLS.
fn is_tls(url: &str) -> bool {
    with_scheme(url).into_connection_info().is_ok_and(|info| matches!(info.addr(), ConnectionAddr::TcpTls { .. }))
}

/// Adds the scheme to a URL without one: a path is a socket, anything else a host.
fn with_scheme(url: &str) -> String {
    match url {
        "" => String::new(),
        _ if url.contains("://") => url.to_owned(),
        path if path.starts_with('/') => format!("redis+unix://{path}"),
        host => format!("redis://{host}"),
    }
}

impl Tls {
    fn certificates(&self) -> Result<TlsCertificates, Failure> {
        // The client takes a file of authorities without a certificate, and would then trust none.
        let read = |path: &Path, what: &str, has: fn(&[u8]) -> bool| {
            let bytes = std::fs::read(path)
                .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
            match has(&bytes) {
                true => Ok(bytes),
                false => Err(Failure::new(format!("{} has no {what} in PEM format", path.display()))),
            }
        };
        let certificate = |path: &Path| read(path, "certificate", |pem| CertificateDer::from_pem_slice(pem).is_ok());
        let private_key = |path: &Path| read(path, "private key", |pem| PrivateKeyDer::from_pem_slice(pem).is_ok());
        let client_tls = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                Some(ClientTlsConfig { client_cert: certificate(cert)?, client_key: private_key(key)? })
            }
            _ => None,
        };
        let root_cert = self.cacert.as_deref().map(certificate).transpose()?;
        Ok(TlsCertificates { client_tls, root_cert })
    }
}

fn with_insecure(addr: ConnectionAddr, insecure: bool) -> ConnectionAddr {
    match addr {
        ConnectionAddr::TcpTls { host, port, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure, tls_params }
        }
        other => other,
    }
}
