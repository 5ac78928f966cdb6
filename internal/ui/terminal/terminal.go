// Package terminal asks what standard input, output and error are, and asks the user.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// defaultWidth is the width of what is no terminal, in columns.
const defaultWidth = 80

// Width is the width of f in columns, 80 where it is no terminal.
func Width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return defaultWidth
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
