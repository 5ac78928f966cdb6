package identify

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Real JVMs say what they were given by a variable and on the command line, and how many compilers they have.
func TestPerfDataForReal(t *testing.T) {
	require.Root(t)
	const nobody = 65534 // a JVM of a user without an account has no such file
	stranger := &syscall.Credential{Uid: nobody, Gid: nobody}
	t.Cleanup(func() { os.Remove("/tmp/hsperfdata_nobody") }) // if it is empty
	for _, java := range require.JDK(t) {
		version := filepath.Base(filepath.Dir(filepath.Dir(java)))
		for name, attr := range map[string]*syscall.SysProcAttr{
			"our user":              {},
			"another user":          {Credential: stranger},
			"another PID namespace": {Credential: stranger, Cloneflags: unix.CLONE_NEWPID},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				cmd := start(t, attr, "ready", named(t, java, "-XX:+UsePerfData", "-XX:TieredStopAtLevel=4",
					"-XX:CICompilerCount=5", "-XX:-UseSerialGC", "-XX:+UseParallelGC")...)
				jvm, err := PerfData(cmd.Process.Pid)
				if err != nil || jvm == nil || jvm.CompilerThreads != 5 || jvm.Collector != "Parallel" ||
					!strings.Contains(version, strings.Split(jvm.Version, ".")[0]) ||
					!slices.Contains(jvm.Options, "-XX:CICompilerCount=5") {
					t.Errorf("%+v, %v", jvm, err)
				}
			})
		}
		for collector, want := range map[string]string{"-XX:+UseSerialGC": "Serial", "-XX:+UseG1GC": "G1", "-XX:+UseZGC": "Z"} {
			cmd := start(t, nil, "ready", named(t, java, "-XX:+UsePerfData", "-XX:-UseSerialGC", collector)...)
			if jvm, err := PerfData(cmd.Process.Pid); err != nil || jvm == nil || jvm.Collector != want {
				t.Errorf("%s %s: %+v, %v", version, collector, jvm, err)
			}
		}
		cmd := start(t, nil, "ready", named(t, java)...)
		if jvm, err := PerfData(cmd.Process.Pid); err != nil || jvm != nil {
			t.Errorf("%s without performance data: %+v, %v", version, jvm, err)
		}
	}
	if jvm, err := PerfData(os.Getpid()); jvm != nil || err != nil {
		t.Errorf("no JVM: %+v, %v", jvm, err)
	}
}

func TestPerfDataFile(t *testing.T) {
	for maps, want := range map[string]string{
		"7f91-7f92 rw-s 00000000 fe:00 9986068                    /tmp/hsperfdata_root/7\n": "/tmp/hsperfdata_root/7",
		"7f91-7f92 rw-s 00000000 fe:00 9986068      /container/tmp/hsperfdata_app/7\n":      "/tmp/hsperfdata_app/7",
		"7f91-7f92 rw-s 00000000 fe:00 9986068                    /tmp/hsperfdata_root/8\n": "",
		"7f91-7f92 rw-s 00000000 fe:00 1          /tmp/hsperfdata_root/7 (deleted)\n":       "",
		"7f91-7f92 rw-s 00000000 fe:00 1          /tmp/hsperfdata_root/../7\n":              "",
		"": "",
	} {
		if got := perfDataFile([]byte(maps), 7); got != want {
			t.Errorf("%q: %q, want %q", maps, got, want)
		}
	}
}

// perfData writes performance data with strings, and with compiler threads.
func perfData(order binary.AppendByteOrder, compilers uint64, texts ...string) []byte {
	data := []byte{0xca, 0xfe, 0xc0, 0xc0, 0, 2, 0, 1}
	if order.String() == binary.LittleEndian.String() {
		data[4] = 1
	}
	data = append(data, make([]byte, 16)...)
	data = order.AppendUint32(data, perfDataHead)
	data = order.AppendUint32(data, uint32(len(texts)/2+1))
	entry := func(name string, kind byte, elements int, value []byte) {
		const nameBytes = 48
		data = order.AppendUint32(data, uint32(perfDataEntry+nameBytes+len(value)))
		data = order.AppendUint32(data, perfDataEntry)
		data = order.AppendUint32(data, uint32(elements))
		data = append(data, kind, 0, 1, 1)
		data = order.AppendUint32(data, perfDataEntry+nameBytes)
		data = append(append(data, name...), make([]byte, nameBytes-len(name))...)
		data = append(data, value...)
	}
	entry("sun.ci.threads", perfDataLong, 0, order.AppendUint64(nil, compilers))
	for i := 0; i+1 < len(texts); i += 2 {
		value := append([]byte(texts[i+1]), 0)
		entry(texts[i], perfDataByte, len(value), value)
	}
	return data
}

func TestParsePerfData(t *testing.T) {
	texts := []string{"java.property.java.version", "17.0.15", "java.rt.vmFlags", "-XX:ConcGCThreads=2",
		"java.rt.vmArgs", "-Xmx1g -XX:ActiveProcessorCount=3",
		"sun.gc.collector.1.name", "G1 full collection pauses", "sun.gc.collector.x", "Serial"}
	want := threadpool.JVM{Version: "17.0.15",
		Options: []string{"-XX:ConcGCThreads=2", "-Xmx1g", "-XX:ActiveProcessorCount=3"}, CompilerThreads: 3, Collector: "G1"}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		got, err := parsePerfData(perfData(order, 3, texts...))
		if err != nil || got.Processors == nil || *got.Processors != 3 {
			t.Fatalf("%v: %+v, %v", order, got, err)
		}
		want.Processors = got.Processors
		if fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%v: %+v, %v", order, got, err)
		}
	}
	if got, err := parsePerfData(perfData(binary.LittleEndian, 1<<40)); err != nil || got.CompilerThreads != 0 {
		t.Errorf("a trillion compilers: %+v, %v", got, err)
	}
	good := perfData(binary.LittleEndian, 3, texts...)
	for says, spoil := range map[string]func(data []byte) []byte{
		"does not begin":  func([]byte) []byte { return []byte("root:x:0:0") },
		"format 3.0":      func(d []byte) []byte { d[5] = 3; return d },
		"complete 0":      func(d []byte) []byte { d[7] = 0; return d },
		"begins outside":  func(d []byte) []byte { d[31] = 1; return d },
		"ends outside":    func(d []byte) []byte { return d[:len(d)-1] },
		"an entry ends":   func(d []byte) []byte { d[perfDataHead] = 4; return d },
		"an entry begins": func(d []byte) []byte { d[24] = 0; return d },
	} {
		if got, err := parsePerfData(spoil(slices.Clone(good))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", says, got, err)
		}
	}
}

func FuzzParsePerfData(f *testing.F) {
	f.Add(perfData(binary.LittleEndian, 3, "java.rt.vmArgs", "-Xmx1g", "java.property.java.version", "25"))
	f.Add(perfData(binary.BigEndian, 3, "sun.gc.collector.0.name", "ZGC minor collection pauses"))
	f.Fuzz(func(t *testing.T, data []byte) {
		jvm, err := parsePerfData(data)
		if err != nil {
			return
		}
		if jvm.CompilerThreads < 0 || jvm.CompilerThreads > maxPerfCompiler || len(jvm.Version) > maxPerfVersion ||
			len(jvm.Options) > len(data) {
			t.Fatalf("%+v", jvm)
		}
	})
}

// A program that maps a file of such a name is asked no more than a JVM is.
func TestPerfDataOfHostileProcesses(t *testing.T) {
	require.Root(t)
	folder := filepath.Join(t.TempDir(), "tmp", "hsperfdata_root")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, fmt.Sprint(os.Getpid()))
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	// The name is looked up below the root, where there is none: it is not the mapped one.
	if jvm, err := PerfData(os.Getpid()); jvm != nil || err != nil {
		t.Errorf("%+v, %v", jvm, err)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil || perfDataFile(text, uint32(os.Getpid())) == "" {
		t.Errorf("the mapped file is not found: %v", err)
	}
}
