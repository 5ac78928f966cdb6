package identify

import (
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// fakeMemory is the memory of a process, by the address of each piece.
type fakeMemory map[uint64][]byte

func (m fakeMemory) ReadAt(p []byte, at int64) (int, error) {
	for from, piece := range m {
		if i := uint64(at) - from; uint64(at) >= from && i < uint64(len(piece)) {
			n := copy(p, piece[i:])
			if n < len(p) {
				return n, io.EOF
			}
			return n, nil
		}
	}
	return 0, io.EOF
}

const mapsText = `1000-2000 r-xp 00000000 08:01 1 /usr/bin/python3.11
3000-4000 r-xp 00000000 08:01 2 /usr/lib/libgomp.so.1.0.0
4000-5000 rw-p 00001000 08:01 2 /usr/lib/libgomp.so.1.0.0
5000-6000 r-xp 00000000 08:01 3 /usr/lib/x86_64-linux-gnu/libc.so.6
6000-7000 r-xp 00000000 00:00 0 [vdso]
9000-a000 rw-p 00000000 00:00 0
nonsense
b000-a000 r-xp 00000000 00:00 0 /turned/around
`

// call puts a call right before an address.
func call(code []byte, before int) {
	if runtime.GOARCH == "arm64" {
		binary.LittleEndian.PutUint32(code[before-4:], 0x94000001)
		return
	}
	code[before-5] = 0xe8
}

func TestStartedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		stack []uint64 // from the stack pointer up
		want  string
	}{
		"a thread of a library":             {[]uint64{0x5010, 0x3010, 0x3020, 0x5020, 0x5030, 0}, "libgomp.so.1.0.0"},
		"called back by the program":        {[]uint64{0x5010, 0x3010, 0x1020, 0x5020}, "python3.11"},
		"a pointer to a function":           {[]uint64{0x5010, 0x3010, 0x1080, 0x5020}, "libgomp.so.1.0.0"}, // no call before 1080
		"data of a library":                 {[]uint64{0x5010, 0x3010, 0x4020}, "libgomp.so.1.0.0"},
		"the C library alone":               {[]uint64{0x5010, 0x5020}, ""},
		"the vdso, and what is not mapped":  {[]uint64{0x6010, 0x8010, 0xffffffffffffffff}, ""},
		"an empty stack":                    {nil, ""},
		"at the very beginning of its code": {[]uint64{0x3000, 0x1001}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code := map[uint64][]byte{0x1000: make([]byte, 0x1000), 0x3000: make([]byte, 0x1000), 0x5000: make([]byte, 0x1000)}
			m := fakeMemory{}
			for from, piece := range code {
				for _, at := range []int{0x10, 0x20, 0x30} {
					call(piece, at)
				}
				m[from] = piece
			}
			words := make([]byte, 8*len(tc.stack))
			for i, w := range tc.stack {
				binary.LittleEndian.PutUint64(words[8*i:], w)
			}
			sp := uint64(0xa000) - uint64(len(words))
			m[sp] = words
			if got := startedBy(m, segments([]byte(mapsText)), sp); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	if got := startedBy(fakeMemory{}, segments([]byte(mapsText)), 0x3010); got != "" {
		t.Errorf("a stack pointer in code: %q", got)
	}
}

func TestEndsWithCall(t *testing.T) {
	for _, tc := range []struct {
		arch string
		code []byte
		want bool
	}{
		{"amd64", []byte{0, 0, 0xe8, 1, 2, 3, 4}, true},       // call rel32
		{"amd64", []byte{0, 0, 0, 0, 0, 0xff, 0xd0}, true},    // call *%rax
		{"amd64", []byte{0, 0, 0, 0, 0, 0xff, 0x10}, true},    // call *(%rax)
		{"amd64", []byte{0, 0, 0, 0, 0xff, 0x50, 8}, true},    // call *8(%rax)
		{"amd64", []byte{0, 0, 0, 0, 0xff, 0x14, 0xc3}, true}, // call *(%rbx,%rax,8)
		{"amd64", []byte{0, 0, 0, 0xff, 0x54, 0x24, 8}, true}, // call *8(%rsp)
		{"amd64", []byte{0, 0xff, 0x15, 1, 2, 3, 4}, true},    // call *x(%rip)
		{"amd64", []byte{0, 0xff, 0x90, 1, 2, 3, 4}, true},    // call *x(%rax)
		{"amd64", []byte{0xff, 0x94, 0x24, 1, 2, 3, 4}, true}, // call *x(%rsp)
		{"amd64", []byte{0, 0, 0, 0, 0, 0xff, 0xe0}, false},   // jmp *%rax
		{"amd64", []byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, false},
		{"arm64", []byte{0, 0, 0, 1, 0, 0, 0x94}, true},     // bl
		{"arm64", []byte{0, 0, 0, 0, 0, 0x3f, 0xd6}, true},  // blr x0
		{"arm64", []byte{0, 0, 0, 0, 0, 0x1f, 0xd6}, false}, // br x0
		{"riscv64", []byte{0, 0, 0xe8, 1, 2, 3, 4}, false},
	} {
		if got := endsWithCall(tc.arch, tc.code); got != tc.want {
			t.Errorf("%s % x: %v", tc.arch, tc.code, got)
		}
	}
}

func FuzzStack(f *testing.F) {
	f.Add([]byte(mapsText), []byte{0x10, 0x50, 0, 0, 0, 0, 0, 0}, uint64(0x9ff8))
	f.Fuzz(func(t *testing.T, text, words []byte, sp uint64) {
		all := segments(text)
		for i := 1; i < len(all); i++ {
			if all[i].from < all[i-1].from {
				t.Fatal("out of order")
			}
		}
		if name := startedBy(fakeMemory{sp: words}, all, sp); len(name) > maxOwner {
			t.Errorf("%d bytes of a name", len(name))
		}
	})
}

func TestStackPointer(t *testing.T) {
	for line, want := range map[string]uint64{
		"202 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffe10 0x7f10\n": 0x7ffe10, "-1 0x7ffe20 0x7f10\n": 0x7ffe20, "running\n": 0, "": 0, "1 x y": 0,
	} {
		if got, ok := stackPointer(line); got != want || ok != (want > 0) {
			t.Errorf("%q: %x, %v", line, got, ok)
		}
	}
}

// A library whose thread sleeps owns it; one that is mapped as well, and has no thread, does not.
func TestOwnerOfRealThreads(t *testing.T) {
	cc := require.CCompiler(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	build := func(args ...string) {
		if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, text)
		}
	}
	build("-shared", "-fPIC", "-O2", "-o", filepath.Join(dir, "libidle.so"), write("idle.c", "int idle(void) { return 1; }\n"))
	build("-shared", "-fPIC", "-O2", "-pthread", "-o", filepath.Join(dir, "libwork.so"), write("work.c", `#include <pthread.h>
#include <unistd.h>
static void *work(void *x) { for (;;) pause(); return x; }
int work_start(void) { pthread_t t; return pthread_create(&t, 0, work, 0); }
`))
	exe := filepath.Join(dir, "server")
	build("-O2", "-o", exe, write("server.c", `#include <stdio.h>
#include <unistd.h>
int idle(void), work_start(void);
int main(void) { int failed = work_start() + idle() - 1; printf("%d\n", failed); fflush(stdout); for (;;) pause(); }
`), "-L"+dir, "-lidle", "-lwork", "-Wl,-rpath,"+dir)
	cmd := exec.Command(exe)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if said := make([]byte, 2); true {
		if _, err := io.ReadFull(out, said); err != nil || said[0] != '0' {
			t.Fatalf("it says %q: %v", said, err)
		}
	}
	for range 100 { // its thread may not sleep yet
		owner := Owner(cmd.Process.Pid, "server")
		if owner == "libwork.so" {
			return
		}
		if owner != "" {
			t.Fatalf("its thread is of %q", owner)
		}
	}
	t.Error("nothing owns its thread")
}
