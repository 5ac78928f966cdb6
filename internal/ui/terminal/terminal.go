// Package terminal asks what standard input, output and error are, and asks the user.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

// defaultWidth is the width of what is no terminal, in columns.
const defaultWidth = 100

// Width is the width of f in columns: the terminal's, else COLUMNS, else 100.
func Width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	if w, given := columns(); given {
		return w
	}
	return defaultWidth
}

// columns is COLUMNS, where it is a number that makes sense.
func columns() (width int, given bool) {
	w, err := strconv.Atoi(os.Getenv("COLUMNS"))
	return w, err == nil && w > 0 && w < 1<<16
}

// Bounded says whether f has a width that its reader chose: it is a terminal, or COLUMNS is set.
func Bounded(f *os.File) bool {
	_, given := columns()
	return given || Is(f)
}

// ASCII says whether the locale has no characters beyond ASCII: the first of LC_ALL, LC_CTYPE and LANG that is set
// names no UTF-8. Where none is set, as in most container images, UTF-8 is assumed.
func ASCII() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			locale = strings.ToLower(locale)
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}

// Style is how text on f looks.
func Style(f *os.File) page.Style {
	return page.Style{Width: Width(f), ASCII: ASCII(), Color: Color(f)}
}

// Message writes a message of one or more lines to f, fitted to it where it is a terminal. A message that cannot be
// written is no failure.
func Message(f *os.File, message string) {
	style := Style(f)
	if !Is(f) {
		style.Width = page.Unbounded // what reads a log line by line wants it whole
	}
	_ = style.Send(f, message+"\n")
}

// Is says whether people read f as it comes.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// FullScreen says whether f understands more than lines of text.
func FullScreen(f *os.File) bool { return Is(f) && os.Getenv("TERM") != "dumb" }

// Color says whether f shall have colours, after no-color.org and TERM=dumb.
func Color(f *os.File) bool { return FullScreen(f) && os.Getenv("NO_COLOR") == "" }

// Ask asks a yes-or-no question; anything but yes is no. The end of ctx ends the
// question with its error. The answer is then still awaited: the read cannot be
// cancelled, and the process is expected to end.
func Ask(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(in).ReadString('\n')
		line <- answer
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return false, ctx.Err()
	case answer := <-line:
		answer = strings.ToLower(strings.TrimSpace(answer))
		return answer == "y" || answer == "yes", nil
	}
}
