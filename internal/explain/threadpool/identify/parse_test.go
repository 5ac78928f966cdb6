package identify

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

func TestParseDump(t *testing.T) {
	dump := strings.Join([]string{
		`2026-11-21 12:40:02`,
		`Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):`,
		``,
		`"main" #1 prio=5 os_prio=0 cpu=33.11ms elapsed=1.01s tid=0x00007f58f4012a40 nid=0x2f1b waiting on condition  [0x00007f58fb1fe000]`,
		`   java.lang.Thread.State: TIMED_WAITING (sleeping)`,
		"\tat java.lang.Thread.sleep(java.base@17.0.15/Native Method)",
		`"new format" #3 [10392] prio=5 os_prio=0 cpu=33.11ms elapsed=1.01s tid=0x00007f58f4012a40 nid=10392 runnable  [0x0]`,
		`"GC Thread#0" os_prio=0 cpu=0.26ms elapsed=1.05s tid=0x00007f58f4068b10 nid=0x2f1c runnable  `,
		`"a " nid=0x7 #9 b" #12 daemon prio=5 tid=0x1 nid=0x2f1d runnable`,
		`"cut off" #13 prio=5 tid=0x1 ni`,
		`"no end nid=0x1`,
		`" nid=0x1`,
		`"too large" nid=0x1ffffffff x`,
		`"not a number" nid=0xyz x`,
		`"" #4 nid=44 x`,
		`nid=5 "x"`,
		`"last" nid=6`,
	}, "\n")
	want := map[uint32]string{0x2f1b: "main", 10392: "new format", 0x2f1c: "GC Thread#0", 0x2f1d: `a " nid=0x7 #9 b`, 44: "", 6: "last"}
	if got := parseDump([]byte(dump)); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestParseDumpIsBounded(t *testing.T) {
	var b bytes.Buffer
	for i := range maxDumpThreads + 10 {
		b.WriteString(`"t" nid=` + strconv.Itoa(i) + "\n")
	}
	if got := parseDump(b.Bytes()); len(got) != maxDumpThreads {
		t.Errorf("%d threads", len(got))
	}
	long := parseDump([]byte(`"` + strings.Repeat("x", 1<<20) + `" nid=1`))
	if got := len(long[1]); got != maxThreadName {
		t.Errorf("a name of %d bytes", got)
	}
}

func TestParseReply(t *testing.T) {
	for reply, want := range map[string]string{
		"0\nrest\n":            "",
		"0\n":                  "",
		"":                     "reply was empty",
		"0":                    "reply was empty",
		"101\nno such command": "refused with code 101: no such command",
		"1\x1b\nx\x1b[2J":      `refused with code 1\x1b: x\x1b[2J`,
	} {
		_, err := parseReply([]byte(reply))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", reply, err, want)
		}
	}
}

func FuzzParseDump(f *testing.F) {
	f.Add([]byte("0\n\"main\" #1 prio=5 tid=0x1 nid=0x2f1b waiting\n\"a\" nid=6"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		output, err := parseReply(reply)
		if err != nil {
			return
		}
		for _, name := range parseDump(output) {
			if len(name) > maxThreadName || strings.Contains(name, "\n") {
				t.Fatalf("%q", name)
			}
		}
	})
}

func TestLibraries(t *testing.T) {
	maps := strings.Join([]string{
		"55d3c0a00000-55d3c0a02000 r--p 00000000 fe:01 1835022                    /usr/bin/python3.11",
		"7f1e9c000000-7f1e9c021000 rw-p 00000000 00:00 0 ",
		"7f1e9d000000-7f1e9d021000 r-xp 00000000 fe:01 77                         /usr/lib/libgomp.so.1.0.0",
		"7f1e9e000000-7f1e9e021000 r--p 00001000 fe:01 77                         /usr/lib/libgomp.so.1.0.0",
		"7f1e9f000000-7f1e9f021000 r-xp 00000000 fe:01 78                         /opt/my app/lib x.so (deleted)",
		"7f1ea0000000-7f1ea0021000 r-xp 00000000 fe:01 79                         /opt/new\\012line.so",
		"7f1ea0000000-7f1ea0021000 r--p 00000000 fe:01 79                         /usr/lib/locale/C.utf8",
		"7ffd7a5d4000-7ffd7a5f5000 rw-p 00000000 00:00 0                          [stack]",
		"/not/a/map.so",
		"7f1eb0000000-7f1eb0021000 r-xp 00000000 fe:01 80                         /cut/off.so",
	}, "\n") // no newline at the end: the last line was cut
	want := []string{"/opt/my app/lib x.so", `/opt/new\012line.so`, "/usr/lib/libgomp.so.1.0.0"}
	if got := libraries([]byte(maps)); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	var many bytes.Buffer
	for i := range 2 * maxLibraries {
		many.WriteString("0-1 r-xp 0 0:0 1 /lib/" + strconv.Itoa(i) + ".so\n")
	}
	if got := len(libraries(many.Bytes())); got != maxLibraries {
		t.Errorf("%d libraries", got)
	}
	if got := libraries(nil); got == nil || len(got) != 0 {
		t.Errorf("no maps: %v, want none, but known", got)
	}
}

func FuzzLibraries(f *testing.F) {
	f.Add([]byte("7f1e9d000000-7f1e9d021000 r-xp 00000000 fe:01 77 /usr/lib/libgomp.so.1.0.0\n"))
	f.Fuzz(func(t *testing.T, maps []byte) {
		for _, file := range libraries(maps) {
			if !strings.HasPrefix(file, "/") || strings.Contains(file, "\n") {
				t.Fatalf("%q", file)
			}
		}
	})
}

func TestArguments(t *testing.T) {
	got := arguments([]byte("java\x00-XX:ActiveProcessorCount=2\x00\x00-XX:ActiveProcessorCount=4\x00last"))
	if want := []string{"java", "-XX:ActiveProcessorCount=2", "", "-XX:ActiveProcessorCount=4", "last"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// The first word that is no option, an empty one too, is the class, and what comes after it is the program's (libjli, java.c:
	// ParseArguments).
	if cpus := threadpool.Known().ToldCPUs(nil, got); len(cpus) != 1 || cpus["jvm"] != 2 {
		t.Errorf("told %v CPUs", cpus)
	}
	if cpus := threadpool.Known().ToldCPUs(nil, []string{"java"}); len(cpus) != 0 {
		t.Errorf("told %v CPUs, want not known", cpus)
	}
	if got := len(arguments(bytes.Repeat([]byte{0}, 2*maxArguments))); got != maxArguments {
		t.Errorf("%d arguments", got)
	}
}

func TestParseStatus(t *testing.T) {
	text := "Name:\tjava\nUid:\t0\t1000\t0\t1000\nGid:\t0\t1001\t0\t1001\nNSpid:\t4711\t12\t1\nSigCgt:\t2000000181005ccf\n"
	s, err := parseStatus([]byte(text))
	if want := (status{uid: 1000, gid: 1001, caught: 0x2000000181005ccf, inner: 1, nested: true}); err != nil || s != want {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
	for _, c := range []struct{ from, to, want string }{
		{"SigCgt:\t2000000181005ccf\n", "", "no line SigCgt"},
		{"4711\t12\t1", "", "NSpid"},
		{"0\t1000\t0\t1000", "0", "Uid"},
		{"1001\t0", "x\t0", "Gid"},
		{"2000000181005ccf", "-", "SigCgt"},
	} {
		if _, err := parseStatus([]byte(strings.Replace(text, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("without %q: %v", c.from, err)
		}
	}
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := parseStatus(own); err != nil || s.uid != uint32(os.Geteuid()) || s.inner != uint32(os.Getpid()) {
		t.Errorf("our own: %+v, %v", s, err)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Uid:\t0\t1000\t0\t1000\nGid:\t0\t1001\t0\t1001\nNSpid:\t4711\t12\t1\nSigCgt:\t2000000181005ccf\n"))
	f.Fuzz(func(t *testing.T, text []byte) { parseStatus(text) })
}
