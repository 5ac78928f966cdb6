package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// Services with other work beside their answers.

var (
	//go:embed files/axum/Cargo.toml
	axumToml string
	//go:embed files/axum/Cargo.lock
	axumLock string
	//go:embed files/axum/src/main.rs
	axumMain string
)

func axumLogins() testCase {
	return testCase{
		name:    "axum-logins",
		truth:   "A Rust service (axum on Tokio) answers 200 hellos a second on Tokio's workers, beside three times a second eight logins at once, some 14 ms each, on its blocking threads. The blocking threads spend the quota, the workers wait. Tokio gives all of them one name.",
		limit:   0.6,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"(long runs)", "blocking", "tokio"},
		suffers: []string{"tokio", "passwords"},
		needs:   []need{{"cargo", "cargo"}},
		start:   startAxum,
	}
}

func startAxum(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	built, err := s.cargo(ctx)
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{built, addr}}); err != nil {
		return service{}, err
	}
	hello := request{Protocol: protocolHTTP, Text: "http://" + addr + "/hello"}
	login := request{Protocol: protocolHTTP, Text: "http://" + addr + "/login"}
	return service{
		streams:  []loadgen.Stream{{Name: "hello", PerSecond: 200}, {Name: "login", PerSecond: 24, Burst: 8, Background: true}},
		requests: []request{hello, login}, connections: 32,
	}, s.ready(ctx, login)
}

// cargo builds the Rust service in the user's cache, where the next case finds it built.
func (s *stage) cargo(ctx context.Context) (built string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unthrottle-truth", "axum")
	for name, text := range map[string]string{"Cargo.toml": axumToml, "Cargo.lock": axumLock, "src/main.rs": axumMain} {
		path := filepath.Join(dir, name)
		if have, err := os.ReadFile(path); err == nil && string(have) == text {
			continue // a new time makes cargo build it again
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	path := "PATH=" + os.Getenv("PATH")
	build := program{args: []string{"cargo", "build", "--release", "--locked", "--manifest-path", filepath.Join(dir, "Cargo.toml")}, env: []string{path, "HOME=" + home}}
	return filepath.Join(dir, "target/release/passwords"), s.prepare(ctx, build)
}

//go:embed files/reports.py
var reportsPy string

func fastapiReports() testCase {
	return testCase{
		name:    "fastapi-reports",
		truth:   "FastAPI under uvicorn answers 120 hellos a second on its event loop, beside twice a second six reports at once, some 22 ms each, on its pool of threads. The threads spend the quota, the event loop waits. All threads have the process's name.",
		limit:   0.7,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"(workers)", "(long runs)", "AnyIO"},
		suffers: []string{"python", "uvicorn"},
		needs:   []need{{"/usr/lib/python3/dist-packages/uvicorn", "python3-uvicorn"}, {"/usr/lib/python3/dist-packages/fastapi", "python3-fastapi"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			if _, err := s.file("reports.py", reportsPy); err != nil {
				return service{}, err
			}
			args := []string{"/usr/bin/python3", "-m", "uvicorn", "--port", port, "--no-access-log", "reports:app"}
			if err := s.start(program{args: args}); err != nil {
				return service{}, err
			}
			hello := request{Protocol: protocolHTTP, Text: "http://" + addr + "/hello"}
			report := request{Protocol: protocolHTTP, Text: "http://" + addr + "/report"}
			return service{
				streams:  []loadgen.Stream{{Name: "hello", PerSecond: 120}, {Name: "report", PerSecond: 12, Burst: 6, Background: true}},
				requests: []request{hello, report}, connections: 32,
			}, s.ready(ctx, report)
		},
	}
}

//go:embed files/jobs.py
var jobsPy string

func rqExports() testCase {
	return testCase{
		name:    "rq-exports",
		truth:   "waitress answers 80 small requests a second in a container with redis and a worker of RQ, which forks a process for each export, one after the other. The exports spend the quota, waitress waits. All but redis are processes named python3.",
		limit:   0.6,
		causes:  []string{"pool", "shortage"},
		guilty:  []string{"(child)", "(long runs)", "rq"},
		suffers: []string{"python", "waitress"},
		needs:   []need{{"redis-server", "redis-server"}, {"/usr/lib/python3/dist-packages/rq", "python3-rq"}, {"/usr/lib/python3/dist-packages/waitress", "python3-waitress"}},
		start:   startRQ,
	}
}

func startRQ(ctx context.Context, s *stage) (service, error) {
	store, storePort, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"redis-server", "--bind", "127.0.0.1", "--port", storePort, "--save", "", "--dir", s.dir}}); err != nil {
		return service{}, err
	}
	if err := s.ready(ctx, request{Protocol: protocolRedis, Addr: store, Text: "PING"}); err != nil {
		return service{}, err
	}
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if _, err := s.file("jobs.py", jobsPy); err != nil {
		return service{}, err
	}
	settings := []string{"REDIS_PORT=" + storePort, "PYTHONPATH=" + s.dir}
	if err := s.start(program{args: []string{"/usr/bin/python3", "-m", "waitress", "--listen=" + addr, "jobs:application"}, env: settings}); err != nil {
		return service{}, err
	}
	worker := []string{"/usr/bin/python3", "-m", "rq.cli", "worker", "--url", "redis://127.0.0.1:" + storePort, "--quiet", "exports"}
	if err := s.start(program{args: worker, env: settings}); err != nil {
		return service{}, err
	}
	small := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	export := request{Protocol: protocolHTTP, Text: "http://" + addr + "/export"}
	return service{
		streams: []loadgen.Stream{{Name: "small", PerSecond: 80}}, requests: []request{small}, connections: 16,
		disturb: func(ctx context.Context) { again(ctx, export, 250*time.Millisecond) },
	}, s.ready(ctx, export)
}

const clamdConfig = `Foreground yes
LogFile %[1]s/clamd.log
DatabaseDirectory %[1]s/db
TemporaryDirectory %[1]s
TCPAddr 127.0.0.1
TCPSocket %[2]s
MaxThreads 4
User root
DisableCache yes
`

func clamdScans() testCase {
	return testCase{
		name:    "clamd-scans",
		truth:   "ClamAV's daemon answers 60 pings a second, beside four scans at once, twice a second, of a mail of 1 MB. The threads that scan spend the quota, the one that takes connections waits.",
		limit:   0.5,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"(workers)", "(long runs)"},
		suffers: []string{"clamd"},
		needs:   []need{{"clamd", "clamav-daemon"}},
		start:   startClamd,
	}
}

func startClamd(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if err := os.Mkdir(filepath.Join(s.dir, "db"), 0o755); err != nil {
		return service{}, err
	}
	if _, err := s.file("db/truth.ndb", signatures(2000)); err != nil {
		return service{}, err
	}
	if _, err := s.file("mail.html", "<html><ul>"+pageOfText(1_000_000)); err != nil {
		return service{}, err
	}
	config, err := s.file("clamd.conf", fmt.Sprintf(clamdConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"clamd", "-c", config}}); err != nil {
		return service{}, err
	}
	ping := request{Protocol: protocolClamd, Addr: addr, Text: "nPING"}
	scan := request{Protocol: protocolClamdScan, Addr: addr, Text: "nSCAN " + s.dir + "/mail.html"}
	return service{
		streams:  []loadgen.Stream{{Name: "ping", PerSecond: 60}, {Name: "scan", PerSecond: 8, Burst: 4, Background: true}},
		requests: []request{ping, scan}, connections: 16,
	}, s.ready(ctx, scan)
}

// signatures are n of ClamAV's that no file here has: a name, any type of file, anywhere in it, and bytes.
func signatures(n int) string {
	all := ""
	for i := range n {
		all += fmt.Sprintf("Truth.%d:0:*:%08x7472757468%08x\n", i, i*2654435761%(1<<32), i)
	}
	return all
}

//go:embed files/nightly.jsp
var nightlyJSP string

const tomcatConfig = `<Server port="-1"><Service name="Catalina">
<Connector address="127.0.0.1" port="%s" protocol="HTTP/1.1" maxThreads="16"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" unpackWARs="false" autoDeploy="false"/></Engine>
</Service></Server>
`

const ecj = "/usr/share/java/ecj.jar"

func tomcatBatch() testCase {
	return testCase{
		name:    "tomcat-batch",
		truth:   "Tomcat answers 120 small pages a second, and a java.util.Timer in the same JVM compresses an export 2.5 times a second, longer than a period's quota each. The timer's thread spends the quota, the pages wait.",
		limit:   0.6,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"Timer-"},
		suffers: []string{"http-nio", "exec"},
		needs:   []need{{"java", "openjdk-17-jdk-headless"}, {"/usr/share/tomcat10/bin/bootstrap.jar", "tomcat10-common"}, {"/usr/share/tomcat10/etc/web.xml", "tomcat10"}, {ecj, "libecj-java"}},
		start:   startTomcat,
	}
}

func startTomcat(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	for _, dir := range []string{"conf", "lib", "logs", "temp", "work", "webapps/ROOT/WEB-INF"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o755); err != nil {
			return service{}, err
		}
	}
	web, err := os.ReadFile("/usr/share/tomcat10/etc/web.xml")
	if err != nil {
		return service{}, err
	}
	for name, text := range map[string]string{
		"conf/server.xml": fmt.Sprintf(tomcatConfig, port), "conf/web.xml": string(web), "webapps/ROOT/index.jsp": nightlyJSP,
	} {
		if _, err := s.file(name, text); err != nil {
			return service{}, err
		}
	}
	// Tomcat compiles the page with it.
	if err := os.Symlink(ecj, filepath.Join(s.dir, "lib/ecj.jar")); err != nil {
		return service{}, err
	}
	const home = "/usr/share/tomcat10"
	args := []string{"java", "-Xmx256m", "-cp", home + "/bin/bootstrap.jar:" + home + "/bin/tomcat-juli.jar", "-Dcatalina.home=" + home,
		"-Dcatalina.base=" + s.dir, "-Djava.io.tmpdir=" + s.dir + "/temp", "org.apache.catalina.startup.Bootstrap", "start"}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/index.jsp"}
	return service{streams: []loadgen.Stream{{Name: "page", PerSecond: 120}}, requests: []request{page}, connections: 16}, s.ready(ctx, page)
}

const sshdConfig = `ListenAddress 127.0.0.1
Port %[2]s
HostKey %[1]s/key
PidFile none
UsePAM no
MaxStartups 200
`

func sshdMake() testCase {
	return testCase{
		name:    "sshd-make",
		truth:   "sshd takes 15 connections a second in a container in which make -j 4 compiles C files with gcc, again and again. The compilers spend the quota, sshd waits.",
		limit:   1,
		causes:  []string{"pool", "shortage"},
		guilty:  []string{"cc", "make"},
		suffers: []string{"sshd"},
		needs:   []need{{"/usr/sbin/sshd", "openssh-server"}, {"make", "make"}, {"gcc", "gcc"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // compiled into sshd
				return service{}, err
			}
			if err := s.prepare(ctx, program{args: []string{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.dir + "/key"}}); err != nil {
				return service{}, err
			}
			config, err := s.file("sshd_config", fmt.Sprintf(sshdConfig, s.dir, port))
			if err != nil {
				return service{}, err
			}
			if err := s.start(program{args: []string{"/usr/sbin/sshd", "-D", "-f", config}}); err != nil {
				return service{}, err
			}
			makefile, err := s.file("build.mk", buildMk)
			if err != nil {
				return service{}, err
			}
			connect := request{Protocol: protocolSSH, Addr: addr}
			if err := s.ready(ctx, connect); err != nil {
				return service{}, err
			}
			loop := "while :; do make -s -j 4 -f " + makefile + "; done"
			return service{streams: []loadgen.Stream{{Name: "connect", PerSecond: 15}}, requests: []request{connect}},
				s.start(program{args: []string{"/bin/sh", "-c", loop}})
		},
	}
}

func nginxFFmpeg() testCase {
	return testCase{
		name:    "nginx-ffmpeg",
		truth:   "nginx answers 200 requests a second for a page of 2 kB in a container in which ffmpeg encodes one short film after another with x264's threads. ffmpeg spends the quota, nginx waits.",
		limit:   1,
		causes:  []string{"pool", "shortage"},
		guilty:  []string{"ffmpeg", "x264", "enc", "dec", "av:"},
		suffers: []string{"nginx"},
		needs:   []need{{"nginx", "nginx-light"}, {"ffmpeg", "ffmpeg"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			of, err := startNginx(ctx, s, 2000, loadgen.Stream{Name: "page", PerSecond: 200})
			if err != nil {
				return of, err
			}
			const loop = "while :; do ffmpeg -v error -y -f lavfi -i testsrc=size=640x360:rate=25:duration=8 -c:v libx264 -threads 4 film.mp4; done"
			return of, s.start(program{args: []string{"/bin/sh", "-c", loop}})
		},
	}
}
