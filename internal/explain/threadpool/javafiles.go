package threadpool

import (
	"path"
	"slices"
	"strings"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Files reads a file that options name, as their program would find it.
type Files func(name string) ([]byte, error)

const (
	// unread begins a word that stands for a file which cannot be read: any option may be in it. No argument has a zero byte.
	unread = "-\x00"
	// flagsVariable stands, in an expanded environment, for the file of -XX:Flags, whose options all others overrule.
	flagsVariable = "-XX:Flags"
	maxJavaFiles  = 32
)

// Expand puts the options of the files that the options of a java command name into their places. What it returns is for
// [Setting.Given] alone. The rules are those of the JDK's libjli/args.c and hotspot/share/runtime/arguments.cpp.
func (f Files) Expand(env, args []string) (expandedEnv, expandedArgs []string) {
	x := expansion{read: f, left: maxJavaFiles}
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, flagsVariable+"=") })
	of := func(variable string, expand func([]string) []string) {
		i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, variable+"=") })
		if i < 0 {
			return
		}
		_, value, _ := strings.Cut(env[i], "=")
		var quoted []string
		for _, word := range expand(words(value)) {
			quoted = append(quoted, `"`+strings.ReplaceAll(word, `"`, `"'"'"`)+`"`)
		}
		env[i] = variable + "=" + strings.Join(quoted, " ")
	}
	of("JAVA_TOOL_OPTIONS", x.ofVM) // in this order, since the last -XX:Flags counts
	of("JDK_JAVA_OPTIONS", func(all []string) []string { return x.ofVM(x.ofLauncher(all)) })
	if len(args) > 0 && path.Base(args[0]) == "java" {
		all := x.ofLauncher(args[1:])
		own := len(javaWords(all))
		args = slices.Concat(args[:1], x.ofVM(all[:own]), all[own:])
	}
	of("_JAVA_OPTIONS", x.ofVM)
	if x.flags != "" {
		env = append(env, flagsVariable+"=")
		of(flagsVariable, func([]string) []string { return x.words(x.flags, flagsWords) })
	}
	return env, args
}

// expansion is the state of one.
type expansion struct {
	read     Files
	left     int  // files
	disabled bool // by --disable-@files
	flags    string
}

// words are those of a file, or one that stands for it if it cannot be read.
func (x *expansion) words(name string, split func(string) []string) []string {
	x.left--
	if x.read != nil && x.left >= 0 {
		content, err := x.read(name)
		if err == nil && !strings.Contains(string(content), "\x00") {
			return split(string(content))
		}
	}
	return []string{unread + name}
}

// ofLauncher expands @argfiles up to the class. Behind a file that cannot be read, nothing is known of a word.
func (x *expansion) ofLauncher(all []string) (out []string) {
	for i, word := range all {
		name, at := strings.CutPrefix(word, "@")
		switch {
		case word == "--disable-@files":
			x.disabled = true
			out = append(out, word)
		case !at || name == "" || x.disabled:
			out = append(out, word)
		case len(javaWords(out)) < len(out):
			return append(out, all[i:]...)
		case strings.HasPrefix(name, "@"):
			out = append(out, name)
		default:
			more := x.words(name, argfileWords)
			out = append(out, more...)
			if len(more) == 1 && strings.HasPrefix(more[0], unread) {
				return out
			}
		}
	}
	return out
}

// ofVM expands -XX:VMOptionsFile and finds -XX:Flags.
func (x *expansion) ofVM(all []string) (out []string) {
	for _, word := range all {
		if name, ok := strings.CutPrefix(word, "-XX:VMOptionsFile="); ok {
			out = append(out, x.words(name, words)...)
		} else {
			out = append(out, word)
		}
	}
	for _, word := range out {
		if name, ok := strings.CutPrefix(word, flagsVariable+"="); ok {
			x.flags = name
		}
	}
	return out
}

// argfileWords are those of an @argfile: nextToken of libjli/args.c.
func argfileWords(content string) (all []string) {
	const blanks = " \t\f\n\r"
	var word strings.Builder
	begun, quote := false, byte(0)
	end := func() {
		if begun {
			all = append(all, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(content); i++ {
		c := content[i]
		switch {
		case c == '\n' || c == '\r' || quote == 0 && strings.IndexByte(blanks, c) >= 0:
			end() // quotes end with their line
			quote = 0
			continue
		case quote == 0 && c == '#':
			for i+1 < len(content) && content[i+1] != '\n' && content[i+1] != '\r' {
				i++
			}
		case quote != 0 && c == '\\' && i+1 < len(content):
			i++
			if c = content[i]; c == '\n' || c == '\r' {
				for i+1 < len(content) && strings.IndexByte(blanks, content[i+1]) >= 0 {
					i++
				}
			} else if escaped := strings.IndexByte("nrtf", c); escaped >= 0 {
				word.WriteByte("\n\r\t\f"[escaped])
			} else {
				word.WriteByte(c)
			}
		case c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	end()
	return all
}

// flagsWords are the options of a file of -XX:Flags, which leave -XX: out: process_settings_file of arguments.cpp.
func flagsWords(content string) (all []string) {
	for line := range strings.SplitSeq(content, "\n") {
		for _, word := range words(line) {
			if strings.HasPrefix(word, "#") {
				break
			}
			all = append(all, "-XX:"+word)
		}
	}
	return all
}

// unreadFile is the file for which a value of an option stands; "": it is a value.
func unreadFile(value string) string {
	name, ok := strings.CutPrefix(value, unread)
	if !ok {
		return ""
	}
	return text.Sanitize(name, maxShown)
}
