package identify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A library that is mapped need not own the threads that have no name of their own: ONNX Runtime has a pool beside OpenBLAS,
// and neither names its threads, which the kernel then calls as the program. The function that a thread was started with
// tells: the deepest one on its stack that is not of the C or the C++ library.
//
// Rule: a thread that sleeps shows its stack pointer. A word on its stack is a return address if it lies in an executable
// mapping, right behind a call. The one at the highest address tells.
//
// Worked example, from the stack pointer up: libc (futex), libgomp (barrier), libgomp (gomp_thread_start), libc
// (start_thread), libc (clone3). The thread is libgomp's.
//
// Limits: above the first function lie the thread's own variables. One that holds a return address misleads. A stack of
// which the last maxStack bytes are one function's variables tells nothing.

const (
	maxStack = 128 << 10 // bytes of a stack, from the stack pointer on
	maxCall  = 7         // bytes of a call on x86-64
	maxOwner = 128       // bytes of a file's name
)

// segment is a mapping of a process.
type segment struct {
	from, to   uint64
	executable bool
	file       string // "": none
}

// segments reads /proc/PID/maps (proc_pid_maps(5)), in the order of addresses. It leaves out lines that make no sense.
func segments(maps []byte) (all []segment) {
	for line := range bytes.Lines(maps) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 || len(fields[1]) < 3 {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		s := segment{executable: fields[1][2] == 'x'}
		var one, two error
		s.from, one = strconv.ParseUint(from, 16, 64)
		s.to, two = strconv.ParseUint(to, 16, 64)
		if one != nil || two != nil || s.to <= s.from {
			continue
		}
		if i := bytes.IndexByte(line, '/'); i >= 0 {
			s.file = strings.TrimSuffix(strings.TrimSuffix(string(line[i:]), "\n"), " (deleted)")
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b segment) int { return cmp.Compare(a.from, b.from) })
	return all
}

// find returns the mapping that has an address; nil: none has.
func find(all []segment, address uint64) *segment {
	i, _ := slices.BinarySearchFunc(all, address, func(s segment, at uint64) int {
		if s.to <= at {
			return -1
		}
		return 1
	})
	if i == len(all) || address < all[i].from {
		return nil
	}
	return &all[i]
}

// memory is that of a process, by address.
type memory interface {
	ReadAt(p []byte, at int64) (int, error)
}

// startedBy returns the name of the file of the function that a thread was started with; "": it is not known.
func startedBy(m memory, mapped []segment, sp uint64) string {
	stack := find(mapped, sp)
	if stack == nil || stack.executable {
		return ""
	}
	words := make([]byte, min(stack.to-sp, maxStack)&^7)
	n, _ := m.ReadAt(words, int64(sp)) // what could not be read tells nothing
	for i := n&^7 - 8; i >= 0; i -= 8 {
		address := binary.LittleEndian.Uint64(words[i:])
		at := find(mapped, address)
		if at == nil || !at.executable || at.file == "" || address < at.from+maxCall || cLibrary(path.Base(at.file)) {
			continue
		}
		code := make([]byte, maxCall)
		if n, _ := m.ReadAt(code, int64(address-maxCall)); n == maxCall && endsWithCall(runtime.GOARCH, code) {
			name := path.Base(at.file)
			return name[:min(len(name), maxOwner)]
		}
	}
	return ""
}

// cLibrary reports whether a file is of the C or C++ library, in which every thread starts.
func cLibrary(name string) bool {
	for _, prefix := range []string{"libc.so", "libc-2.", "libpthread", "ld-", "libstdc++.so", "libc++.so", "libc++abi.so"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// endsWithCall reports whether the last bytes of code are a call (Intel's manual, volume 2, CALL; Arm's manual, BL and BLR).
func endsWithCall(arch string, code []byte) bool {
	n := len(code)
	switch arch {
	case "amd64":
		// FF /2 with a register, or a memory operand of 1, 2, 3, 5, or 6 bytes behind it
		indirect := func(length int) bool {
			return code[n-length] == 0xff && code[n-length+1]>>3&7 == 2
		}
		mod := func(length int) byte { return code[n-length+1] >> 6 }
		sib := func(length int) bool { return code[n-length+1]&7 == 4 }
		switch {
		case code[n-5] == 0xe8,
			indirect(2) && (mod(2) == 3 || mod(2) == 0 && !sib(2)),
			indirect(3) && (mod(3) == 1 && !sib(3) || mod(3) == 0 && sib(3)),
			indirect(4) && mod(4) == 1 && sib(4),
			indirect(6) && (mod(6) == 2 && !sib(6) || mod(6) == 0 && code[n-5]&7 == 5),
			indirect(7) && mod(7) == 2 && sib(7):
			return true
		}
		return false
	case "arm64":
		word := binary.LittleEndian.Uint32(code[n-4:])
		return word>>26 == 0x25 || word&0xfffffc1f == 0xd63f0000
	}
	return false
}
