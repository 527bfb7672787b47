//! Feeds over TLS, by a server whose certificate an authority of the test's own has signed.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use flechtwerk_dev_broker::DevBroker;
use flechtwerk_tests::kafka;
use flechtwerk_tests::{Kafka, Observer, Rig, STOP};
use http_feed::client::{Answer, Http, HttpSettings, http};
use http_feed::server::FeedServer;
use native_tls::{Identity, TlsAcceptor};
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Builder, X509NameBuilder};

type Tried<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// A certificate and its key.
struct Certified {
    certificate: X509,
    key: PKey<Private>,
}

/// Signed by `by` for 127.0.0.1 or, without one, by itself as an authority.
fn certified(name: &str, by: Option<&Certified>) -> Tried<Certified> {
    let key = PKey::from_rsa(Rsa::generate(2048)?)?;
    let mut names = X509NameBuilder::new()?;
    names.append_entry_by_text("CN", name)?;
    let subject = names.build();
    let mut builder = X509Builder::new()?;
    builder.set_version(2)?;
    builder.set_subject_name(&subject)?;
    builder.set_pubkey(&key)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(1)?)?;
    match by {
        Some(by) => {
            builder.set_issuer_name(by.certificate.subject_name())?;
            let address = SubjectAlternativeName::new()
                .ip("127.0.0.1")
                .build(&builder.x509v3_context(Some(&by.certificate), None))?;
            builder.append_extension(address)?;
            builder.sign(&by.key, MessageDigest::sha256())?;
        }
        None => {
            builder.set_issuer_name(&subject)?;
            builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
            builder.sign(&key, MessageDigest::sha256())?;
        }
    }
    Ok(Certified { certificate: builder.build(), key })
}

struct World {
    server: FeedServer,
    /// Where the feed is.
    url: String,
    /// What is to be trusted.
    ca: PathBuf,
    folder: tempfile::TempDir,
}

impl World {
    /// A server behind TLS, with a feed of some items.
    fn new() -> Tried<World> {
        let authority = certified("an authority", None)?;
        let own = certified("a server", Some(&authority))?;
        let identity =
            Identity::from_pkcs8(&own.certificate.to_pem()?, &own.key.private_key_to_pem_pkcs8()?)?;
        let acceptor = TlsAcceptor::new(identity)?;
        let server = FeedServer::start("127.0.0.1:0")?;
        server.add("news", 5);
        let plain = server.url("news");
        let (address, path) = plain["http://".len()..].split_once('/').ok_or("no path")?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("https://{}/{path}", listener.local_addr()?);
        let address = address.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that does not trust us hangs up.
                drop(pass_on(&acceptor, stream, &address));
            }
        });
        let folder = tempfile::tempdir()?;
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, authority.certificate.to_pem()?)?;
        Ok(World { server, url, ca, folder })
    }
}

/// One request and its answer.
fn pass_on(acceptor: &TlsAcceptor, stream: TcpStream, to: &str) -> Tried {
    let mut stream = acceptor.accept(stream)?;
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    request.truncate(request.len() - 2);
    request.extend_from_slice(b"connection: close\r\n\r\n");
    let mut server = TcpStream::connect(to)?;
    server.write_all(&request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    stream.write_all(&answer)?;
    Ok(stream.shutdown()?)
}

async fn client(ca: Option<PathBuf>) -> Tried<Http> {
    http(HttpSettings { ca, ..HttpSettings::default() }).await
}

#[tokio::test]
async fn a_server_is_believed_whose_authority_is_named() -> Tried {
    let world = World::new()?;
    match client(Some(world.ca.clone())).await?.page(&world.url, 0).await? {
        Answer::Page(page) => assert_eq!(page.items.len(), 5),
        other => panic!("{other:?}"),
    }
    Ok(())
}

/// It may be mended where the server is, so the feed waits; whoever looks at the log learns what is wrong.
#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_read_and_the_reason_is_told() -> Tried {
    let world = World::new()?;
    let other = world.folder.path().join("other.pem");
    std::fs::write(&other, certified("another authority", None)?.certificate.to_pem()?)?;
    for ca in [None, Some(other)] {
        match client(ca).await?.page(&world.url, 0).await? {
            Answer::NotNow { why, .. } => {
                assert!(why.contains("certificate verify failed") && !why.contains("news"), "{why}");
            }
            Answer::Page(page) => panic!("{page:?}"),
        }
    }
    assert_eq!(world.server.repeated(), 0);
    Ok(())
}

#[tokio::test]
async fn a_file_without_certificates_ends_the_start_and_is_named() -> Tried {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "nothing of the kind")?;
    for (file, says) in [(file, "no certificate"), (folder.path().join("missing.pem"), "No such file")] {
        let error = client(Some(file.clone())).await.err().ok_or("it was taken")?.to_string();
        assert!(error.contains(&file.display().to_string()) && error.contains(says), "{error}");
    }
    Ok(())
}

#[test]
fn the_program_reads_a_feed_over_tls() -> Tried {
    let world = World::new()?;
    let broker = DevBroker::builder().topic(("feeds", 1)).topic(("items", 1)).start()?;
    let kafka = Kafka { brokers: broker.bootstrap() };
    let rig = Rig::new(&kafka, env!("CARGO_BIN_EXE_http-feed"))
        .env("FLECHTWERK_RESOURCES_HTTP_CA", &world.ca.to_string_lossy());
    kafka.write("feeds", [kafka::Write::new("news", &format!(r#"{{"url":"{}"}}"#, world.url))]);
    let items = Observer::start(&kafka, "items");
    let mut instance = rig.start();
    assert_eq!(items.wait(5).len(), 5);
    assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    Ok(())
}
