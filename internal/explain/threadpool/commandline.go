package threadpool

import (
	"path"
	"slices"
	"strings"
)

// launchers find a runtime's own options among the words behind its name. All behind its script, class or jar is the program's.
var launchers = []struct {
	program string // pattern of the name
	own     func(args []string) []string
}{
	{"java", javaWords},
	{"node", nodeWords}, {"nodejs", nodeWords},
	{"python", pythonWords}, {"python[0-9]*", pythonWords},
	{"beam*", beamWords}, {"erl", erlWords},
}

// ownWords are a runtime's own options on a command line. Of a program that is none of the launchers it is not known which words reach a
// runtime: all may.
func ownWords(args []string) []string {
	for _, l := range launchers {
		if len(args) > 0 {
			if ok, _ := path.Match(l.program, path.Base(args[0])); ok {
				return l.own(args[1:])
			}
		}
	}
	return args
}

// upTo are the words up to the first that is no option; the options named take the next word too, unless it is attached by "=".
func upTo(args, withNext []string) []string {
	for i := 0; i < len(args); i++ {
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return args[:i]
		case slices.Contains(withNext, args[i]):
			i++
		}
	}
	return args
}

// beamWords are those that erl gives the emulator, of its command line and its variables: up to "--", with a minus where erl has a plus
// (OTP 25's erts/etc/common/erlexec.c).
func beamWords(args []string) (own []string) {
	for _, word := range args {
		if word == "--" {
			break
		}
		if option, ok := strings.CutPrefix(word, "-"); ok && option != "" && (option[0] < '0' || option[0] > '9') {
			word = "+" + option
		}
		own = append(own, word)
	}
	return own
}

// erlWords are those before -extra, behind which all is the program's.
func erlWords(args []string) []string {
	if i := slices.Index(args, "-extra"); i >= 0 {
		return args[:i]
	}
	return args
}

// javaOptions are those that take the next word: IsWhiteSpaceOption of the JDK's src/java.base/share/native/libjli/java.c.
var javaOptions = []string{
	"-classpath", "-cp", "--class-path", "--describe-module", "-d", "--source", "--module-path", "-p", "--upgrade-module-path",
	"--add-modules", "--enable-native-access", "--limit-modules", "--add-exports", "--add-opens", "--add-reads", "--patch-module",
}

// javaWords are by checkArg of libjli/args.c: the first word that no option takes is the class; so is what follows -jar, -m and --module,
// and what --module= names.
func javaWords(args []string) []string {
	own := upTo(args, javaOptions)
	if i := slices.IndexFunc(own, func(word string) bool { return strings.HasPrefix(word, "--module=") }); i >= 0 {
		return own[:i]
	}
	return own
}

// nodeOptions are those that take the next word: all with a value in `node --help` (src/node_options.cc), Node 20.
var nodeOptions = []string{
	"-e", "--eval", "-p", "--print", "-pe", "--allow-fs-read", "--allow-fs-write", "--env-file-if-exists",
	"--snapshot-blob", "-r", "--require", "-C", "--conditions", "--diagnostic-dir", "--disable-proto",
	"--disable-warning", "--dns-result-order", "--es-module-specifier-resolution", "--experimental-default-type",
	"--experimental-loader", "--loader", "--experimental-sea-config", "--heapsnapshot-near-heap-limit",
	"--heapsnapshot-signal", "--icu-data-dir", "--import", "--input-type", "--max-http-header-size",
	"--network-family-autoselection-attempt-timeout", "--openssl-config", "--policy-integrity", "--experimental-policy",
	"--redirect-warnings", "--report-dir", "--report-directory", "--report-filename", "--report-signal",
	"--secure-heap", "--secure-heap-min", "--stack-trace-limit", "--test-name-pattern", "--test-reporter",
	"--test-reporter-destination", "--test-concurrency", "--test-shard", "--test-timeout", "--title",
	"--tls-cipher-list", "--tls-keylog", "--trace-event-categories", "--trace-event-file-pattern",
	"--trace-require-module", "--unhandled-rejections", "--use-largepages", "--v8-pool-size", "--watch-path",
	"--env-file", "--cpu-prof-dir", "--cpu-prof-interval", "--cpu-prof-name", "--heap-prof-dir", "--heap-prof-interval",
	"--heap-prof-name", "--inspect-port", "--debug-port", "--inspect-publish-uid", "--localstorage-file",
	"--build-snapshot-config",
}

// nodeWords are by OptionsParser::Parse of Node's src/node_options-inl.h: options end at "--", at "-" and at the script. An underscore in
// a name is a dash.
func nodeWords(args []string) []string {
	dashed := make([]string, len(args))
	for i, word := range args {
		name, _, _ := strings.Cut(word, "=")
		dashed[i] = strings.ReplaceAll(name, "_", "-") + word[len(name):]
		if word == "--" || word == "-" {
			dashed[i] = "" // no option
		}
	}
	return args[:len(upTo(dashed, nodeOptions))]
}

// pythonWords are by _PyOS_GetOpt of CPython's Python/getopt.c, and config_parse_cmdline of Python/initconfig.c: letters may share a word,
// -W and -X take the rest of it or the next word, and -c and -m end the options. What is returned has each -X as two words.
func pythonWords(args []string) (own []string) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--check-hash-based-pycs":
			i++
			continue
		case strings.HasPrefix(word, "--") && word != "--":
			continue
		case !strings.HasPrefix(word, "-") || word == "-" || word == "--":
			return own
		}
		for j := 1; j < len(word); j++ {
			letter := word[j]
			if !strings.ContainsRune("WXcm", rune(letter)) {
				continue
			}
			value := word[j+1:]
			if value == "" && i+1 < len(args) {
				i++
				value = args[i]
			}
			if letter == 'c' || letter == 'm' {
				return own
			}
			own = append(own, "-"+string(letter), value)
			break
		}
	}
	return own
}
