package source

import (
	"fmt"
	"maps"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/fleet"
)

// claim is a member that an object or a file names.
type claim struct {
	by string // the kind, namespace and name of the object
	fleet.Member
}

// names remembers which object has each name, as long as the source exists.
type names struct {
	holders atomic.Pointer[map[string]string] // what a name is claimed by
}

// settle returns the members, and an error for each claim to a name that another object has. An
// object that has a name keeps it as long as it claims it. A free name goes to the first claim.
func (n *names) settle(claims []claim) []fleet.Member {
	holder := make(map[string]string)
	if had := n.holders.Load(); had != nil {
		for _, c := range claims {
			if (*had)[c.Name] == c.by {
				holder[c.Name] = c.by
			}
		}
	}
	var members, out []fleet.Member
	for _, c := range claims {
		if _, taken := holder[c.Name]; !taken {
			holder[c.Name] = c.by
		}
		if first := holder[c.Name]; first != c.by {
			out = append(out, fleet.Member{Name: c.Name, Err: fmt.Errorf("cluster %q is that of %s: %s names it too, and is left out", c.Name, first, c.by)})
			continue
		}
		members = append(members, c.Member)
	}
	n.holders.Store(&holder)
	return append(members, out...)
}

// fromText returns the configuration of a kubeconfig's current context, and its version.
func fromText(text []byte, file string, terms terms) (*rest.Config, string, error) {
	parsed, err := parseKubeconfig(text, file)
	if err != nil {
		return nil, "", err
	}
	c, err := connectionOf(parsed, parsed.CurrentContext, terms)
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
