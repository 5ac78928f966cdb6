package recording

import (
	"errors"
	"fmt"
	"io"
)

// withheld stands for the name of another container or process.
const withheld = "another "

// Withhold copies a recording without what is not the container's own: names, paths, processes and quotas of whatever else
// ran on the host. "another container" and a number take the place of a name. When and how long others ran
// stays, since a forecast needs it. It is for readers who may see this container only.
func Withhold(from io.Reader, to io.Writer) error {
	in, err := NewReader(from)
	if err != nil {
		return err
	}
	out, err := NewWriter(to, in.Header)
	if err != nil {
		return err
	}
	for {
		var e Event
		if err := in.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if e.Kind == Define && e.Owner >= FirstOwner {
			recorder := e.TGID == in.Header.Recorder // unthrottle itself is no secret
			if e.Text, e.Cgroup = other(e.OwnerKind, e.Owner), 0; !recorder {
				e.TGID = 0
			}
		}
		if err := out.Write(&e); err != nil {
			return err
		}
	}
	if in.Truncated() {
		return out.Flush() // it stays a recording that was cut off
	}
	footer := in.Footer()
	neighbours := make([]Neighbour, 0, len(footer.Neighbours))
	for _, n := range footer.Neighbours {
		neighbours = append(neighbours, Neighbour{Owner: n.Owner, Name: other(OwnerContainer, n.Owner)})
	}
	footer.Neighbours = neighbours
	return out.Close(footer)
}

func other(kind OwnerKind, number uint32) string {
	if kind == OwnerContainer {
		return fmt.Sprintf("%scontainer %d", withheld, number)
	}
	return fmt.Sprintf("%sprocess %d", withheld, number)
}
