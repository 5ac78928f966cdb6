package threadpool

import (
	"math"
	"strconv"
	"strings"
)

// reading is what a runtime makes of the value of a setting.
type reading int

const (
	// ignored is no number to the runtime, which decides as if nothing were given.
	ignored reading = iota
	// undecided leaves the figure to the runtime, or keeps it from starting.
	undecided
	// counted is a number. One below 1 means what zero of the setting says; without it, that the runtime decides.
	counted
)

// reader reads a value by the rule of a runtime that counts n CPUs by itself, of the host's.
type reader func(value string, n, host int) (int, reading)

// readers are the rules, each after the runtime's own source. TestValuesForReal of cmd/unthrottle compares them with real starts.
var readers = map[string]reader{
	// Go's runtime/proc.go, schedinit: strconv.ParseInt to 32 bits, and only above 0.
	"go": func(value string, _, _ int) (int, reading) {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n <= 0 {
			return 0, ignored
		}
		return int(n), counted
	},
	"hotspot": hotspotReads,
	// Integer.parseInt of a trimmed text: Netty's SystemPropertyUtil.getInt.
	"java": func(value string, _, _ int) (int, reading) {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
		if err != nil {
			return 0, ignored
		}
		return int(n), counted
	},
	// usize's FromStr of Rust's core/src/num: a sign of plus, digits. Tokio's Builder panics on all else, and on 0.
	"tokio": func(value string, _, _ int) (int, reading) {
		n, ok := rustReads(value)
		if !ok || n == 0 {
			return 0, undecided
		}
		return n, counted
	},
	// Rayon's ThreadPoolBuilder takes what is a usize: 0 leaves it to Rayon.
	"rayon": func(value string, _, _ int) (int, reading) {
		n, ok := rustReads(value)
		if !ok {
			return 0, ignored
		}
		return n, counted
	},
	// atoi(3): OpenBLAS's driver/others/openblas_env.c takes it above 0; so does Ruby's thread_pthread.c.
	"atoi above 0": func(value string, _, _ int) (int, reading) {
		if n := atoi(value); n > 0 {
			return n, counted
		}
		return 0, ignored
	},
	// atoi(3): Node's src/node_options-inl.h.
	"atoi": func(value string, _, _ int) (int, reading) {
		if value == "" {
			return 0, undecided // "requires an argument"
		}
		return atoi(value), counted
	},
	// atoi(3) into an unsigned int: libuv's src/threadpool.c. An empty value is 0.
	"unsigned atoi": func(value string, _, _ int) (int, reading) { return int(uint32(int32(atoi(value)))), counted },
	// strtol(3) with nothing behind the number, or "default": CPython's Python/initconfig.c, which else does not start.
	"python": func(value string, _, _ int) (int, reading) {
		n, rest, ok := strtol(value)
		switch {
		case value == "":
			return 0, ignored
		case !ok || rest != "" || n < 1 || n > math.MaxInt32:
			return 0, undecided
		}
		return int(n), counted
	},
	// strtoul(3), 1 to 65,535: CoreCLR's GetConfigDWORD of clrconfignative and GetCurrentProcessCpuCount.
	"coreclr": func(value string, _, _ int) (int, reading) {
		if n, _, ok := strtol(value); ok && n > 0 && n <= math.MaxUint16 {
			return int(n), counted
		}
		return 0, ignored
	},
	"libgomp": libgompReads,
	"erlang":  erlangReads,
	// An unsigned decimal, of which 0 is 1: TCLAP and Envoy's source/server/options_impl.cc.
	"envoy": func(value string, _, _ int) (int, reading) {
		n, err := strconv.ParseUint(strings.TrimLeft(value, blanks), 10, 32)
		if err != nil {
			return 0, undecided
		}
		return max(1, int(n)), counted
	},
	// A switch, of which the value is no figure.
	"switch": func(string, int, int) (int, reading) { return 0, undecided },
}

// blanks are those of isspace(3).
const blanks = " \t\n\v\f\r"

// strtol is strtol(3) to base 10. ok: there is a number. It stops at the bounds of 64 bits.
func strtol(text string) (n int64, rest string, ok bool) {
	text = strings.TrimLeft(text, blanks)
	end := 0
	if text != "" && (text[0] == '+' || text[0] == '-') {
		end++
	}
	digits := end
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == digits {
		return 0, text, false
	}
	n, _ = strconv.ParseInt(text[:end], 10, 64)
	return n, text[end:], true
}

// atoi is atoi(3) of glibc: strtol cut to 32 bits, 0 for what is no number.
func atoi(text string) int {
	n, _, _ := strtol(text)
	return int(int32(n))
}

func rustReads(value string) (int, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(value, "+"), 10, 64)
	if err != nil || strings.HasPrefix(value, "++") {
		return 0, false
	}
	return int(min(n, math.MaxInt64)), true
}

// hotspotReads is by atojulong of JDK 17's hotspot/share/runtime/arguments.cpp and JDK 25's
// hotspot/share/utilities/parseInteger.hpp: decimal or 0x, a unit behind it. JDK 17 cuts it to 32 bits, 25 does not start.
func hotspotReads(value string, _, _ int) (int, reading) {
	value, negative := strings.CutPrefix(value, "-")
	base := 10
	if hex := strings.ToLower(value); strings.HasPrefix(hex, "0x") {
		value, base = value[2:], 16
	}
	shift := 0
	if value != "" {
		if at := strings.IndexByte("kmgt", value[len(value)-1]|0x20); at >= 0 {
			value, shift = value[:len(value)-1], 10*(at+1)
		}
	}
	n, err := strconv.ParseUint(value, base, 64)
	if err != nil || n<<shift>>shift != n {
		return 0, undecided
	}
	cut := int(int32(n << shift))
	if negative {
		cut = -cut
	}
	return cut, counted
}

// libgompReads is by parse_unsigned_long_list of GCC 12's libgomp/env.c: decimals with commas between, of which the first is of the
// outer level. LLVM's libomp takes the same numbers, but no sign, and 0 as 1; what it makes of anything else is not defined.
func libgompReads(value string, _, _ int) (int, reading) {
	first, rest := 0, value
	for level := 0; ; level++ {
		n, behind, ok := strtol(rest)
		behind = strings.TrimLeft(behind, blanks)
		if !ok || n <= 0 || behind != "" && behind[0] != ',' {
			return 0, ignored
		}
		if level == 0 {
			first = int(int32(n)) // omp_get_max_threads is an int
		}
		if behind == "" {
			return first, counted
		}
		rest = behind[1:]
	}
}

// erlangReads is by the option S of OTP 25's erts/emulator/beam/erl_init.c: total and online, each by sscanf(3). A total below 1 is
// relative to the host's CPUs, and so many online to those that it counts; the total alone brings no more online than these. Where several
// options give it, one without a second number keeps that of an earlier one, which is not looked at.
func erlangReads(value string, n, host int) (int, reading) {
	first, second, _ := strings.Cut(value, ":")
	total, _, whole := strtol(first)
	online, _, given := strtol(second)
	most := total
	if total <= 0 {
		most += int64(host)
	}
	switch {
	case !given && !whole:
		return 0, undecided // it does not start
	case !given && total > 0:
		online = min(total, int64(n))
	case !given:
		online = total + int64(n)
	case online <= 0:
		online += int64(n)
	}
	if online < 1 || online > most {
		return 0, undecided
	}
	return int(min(online, maxThreads)), counted
}
