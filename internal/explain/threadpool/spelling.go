package threadpool

import (
	"errors"
	"slices"
	"strings"
)

// Spelling is one way to give a setting: a variable that holds the figure alone, an option within a variable, or an option on the
// command line.
type Spelling struct {
	// Variable is "" on the command line, Option where the variable has the figure alone.
	Variable, Option string
}

// Name is the spelling for people, and as pools.yaml has it.
func (s Spelling) Name() string { return strings.TrimSpace(s.Variable + " " + s.Option) }

func parseSpelling(text string) (Spelling, error) {
	if option, ok := strings.CutPrefix(text, flagsVariable+" "); ok {
		return Spelling{flagsVariable, option}, nil
	}
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		return Spelling{Option: text}, nil
	}
	variable, option, _ := strings.Cut(text, " ")
	if variable == "" {
		return Spelling{}, errors.New("an empty spelling")
	}
	return Spelling{variable, option}, nil
}

// In is the value that an environment or a command line gives in this spelling.
func (s Spelling) In(env, args []string) (value string, has bool) {
	switch {
	case s.Variable == "":
		value, _, has = s.among(s.words(args))
	case s.Option == "":
		value, has = Variable(env, s.Variable)
	default:
		text, _ := Variable(env, s.Variable)
		value, _, has = s.among(words(text))
	}
	return value, has
}

// words are those of a command line among which the option may be: one of a runtime itself stands before the script, class or jar.
func (s Spelling) words(args []string) []string {
	if s.Option == "--v8-pool-size" || slices.ContainsFunc([]string{"+", "-X", "-D"}, func(begin string) bool {
		return strings.HasPrefix(s.Option, begin)
	}) {
		return ownWords(args)
	}
	return args
}

// among finds an option, and how it is written; the last one counts: "--option=value", "--option value", "+Svalue", "-X option=value",
// "-Xoption=value". In an option that begins with two dashes, an underscore is a dash. A Java option never takes the next word.
func (s Spelling) among(words []string) (value, written string, has bool) {
	group, name, grouped := strings.Cut(s.Option, " ")
	java := !grouped && (strings.HasPrefix(s.Option, "-X") || strings.HasPrefix(s.Option, "-D"))
	for i, word := range words {
		if java && strings.HasPrefix(word, unread) {
			value, written, has = word, word, true
			continue
		}
		next, follows := "", i+1 < len(words)
		if follows {
			next = words[i+1]
		}
		if grouped {
			whole, option := word, strings.TrimPrefix(word, group)
			if word == group && follows {
				whole, option = word+" "+next, next
			}
			if found, ok := strings.CutPrefix(option, name+"="); ok && strings.HasPrefix(word, group) {
				value, written, has = found, whole, true
			}
			continue
		}
		option, found, assigned := strings.Cut(word, "=")
		if strings.HasPrefix(option, "--") {
			option = strings.ReplaceAll(option, "_", "-")
		}
		rest, attached := strings.CutPrefix(word, s.Option)
		switch {
		case option == s.Option && assigned:
			value, written, has = found, word, true
		case option == s.Option && follows && !java:
			value, written, has = next, word+" "+next, true
		case attached && strings.HasPrefix(s.Option, "+") && rest != "" && strings.Contains("0123456789:-", rest[:1]):
			value, written, has = rest, word, true
		}
	}
	return value, written, has
}

// Variable is a variable's value in an environment.
func Variable(env []string, name string) (value string, has bool) {
	for _, e := range env {
		if found, ok := strings.CutPrefix(e, name+"="); ok {
			return found, true // getenv(3) takes the first
		}
	}
	return "", false
}

// words are those of a variable that holds options. Quotes of both kinds hold one together and are no part of it; one that is not
// closed is text.
func words(text string) (all []string) {
	var word strings.Builder
	begun := false
	end := func() {
		if begun {
			all = append(all, word.String())
		}
		word.Reset()
		begun = false
	}
	for text != "" {
		c := text[0]
		text = text[1:]
		switch c {
		case ' ', '\t', '\n', '\r', '\v', '\f':
			end()
			continue
		case '"', '\'':
			if inside, rest, closed := strings.Cut(text, string(c)); closed {
				word.WriteString(inside)
				text, begun = rest, true
				continue
			}
		}
		word.WriteByte(c)
		begun = true
	}
	end()
	return all
}

// Given is what an environment and a command line give the setting.
type Given struct {
	By    Spelling
	Value string
	// Ignored says that the runtime decides as if nothing were given.
	Ignored bool
	// Otherwise says that it is given in another measure, such as percent, of which the figure is not known.
	Otherwise bool
	// Unread is a file that cannot be read and may have it, so that it is not known; Otherwise is true then.
	Unread string
}

// From is what gives it, for people.
func (g Given) From() string {
	if g.Unread != "" {
		return "a file that cannot be read, " + g.Unread
	}
	return g.By.Name()
}

// Given finds what a program was given of the setting, by the strongest spelling that the runtime takes.
func (s Setting) Given(env, args []string) (g Given, has bool) {
	for _, by := range s.spellings {
		value, ok := by.In(env, args)
		if !ok {
			continue
		}
		if file := unreadFile(value); file != "" {
			return Given{By: by, Otherwise: true, Unread: file}, true
		}
		ignored := s.ignores(value)
		if !has {
			g, has = Given{By: by, Value: value, Ignored: ignored}, true
		}
		if !ignored || !s.passesOver {
			return Given{By: by, Value: value, Ignored: ignored}, true
		}
	}
	for _, by := range s.otherwise {
		if value, ok := by.In(env, args); ok && !has {
			return Given{By: by, Value: value, Otherwise: true, Unread: unreadFile(value)}, true
		}
	}
	return g, has
}

// ToldCPUs are the CPU counts that an environment and a command line tell the runtimes, by the runtime's key.
func (t *Table) ToldCPUs(env, args []string) map[string]float64 {
	told := map[string]float64{}
	for _, s := range t.settings {
		if s.Decides != "processors" {
			continue
		}
		g, has := s.Given(env, args)
		if n, ok := s.Read(g.Value, 0, 1); has && ok && !g.Otherwise {
			told[s.Of] = float64(n)
		}
	}
	return told
}
