package source

import (
	"fmt"
	"maps"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/fleet"
)

// named collects members. The first one of a name counts.
type named struct {
	members []fleet.Member
	by      map[string]string // who named a member, by its name
}

// add adds a member that an object or a file names.
func (n *named) add(by string, m fleet.Member) {
	if n.by == nil {
		n.by = make(map[string]string)
	}
	if first, ok := n.by[m.Name]; ok {
		m = fleet.Member{Name: m.Name, Err: fmt.Errorf("cluster %q is that of %s: %s names it too, and is left out", m.Name, first, by)}
	} else {
		n.by[m.Name] = by
	}
	n.members = append(n.members, m)
}

// fromText returns the configuration of a kubeconfig's current context, and its version.
func fromText(text []byte, file string, allow Allow) (*rest.Config, string, error) {
	parsed, err := parseKubeconfig(text, file)
	if err != nil {
		return nil, "", err
	}
	c, err := connectionOf(parsed, parsed.CurrentContext, allow)
	if err != nil {
		return nil, "", err
	}
	return c.config, c.version, nil
}

// sameMember reports whether a member says what it said before.
func sameMember(a, b fleet.Member) bool {
	return a.Name == b.Name && a.Version == b.Version && a.Client == b.Client &&
		textOf(a.Err) == textOf(b.Err) && maps.Equal(a.Labels, b.Labels)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
