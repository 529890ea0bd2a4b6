package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/kates-go/kates/internal/client/kinds"
	"github.com/kates-go/kates/internal/engine/query"
)

func FuzzATagSaysAKindAndKnownOptions(f *testing.F) {
	for _, tag := range []string{"hosts.getambassador.io,optional", "-", "", ",", ",root", "a,owned,root", "a,optional,optional", "a,later,owned", " a ,Optional", "a, optional", "\xff,"} {
		f.Add(tag)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		got, err := parseTag(tag)
		parts := strings.Split(tag, ",")
		roles := 0
		known := true
		for _, option := range parts[1:] {
			switch option {
			case "optional", "later":
			case "root", "owned":
				roles++
			default:
				known = false
			}
		}
		if (err == nil) != (known && roles <= 1) {
			t.Fatalf("%q: %+v, %v", tag, got, err)
		}
		if err != nil {
			return
		}
		if got.kind != strings.TrimSpace(parts[0]) || got.optional != slices.Contains(parts[1:], "optional") || got.later != slices.Contains(parts[1:], "later") || (got.role != "") != (roles == 1) {
			t.Fatalf("%q: %+v", tag, got)
		}
		_ = kinds.Check(got.kind)
		_ = saysVersion(got.kind)
	})
}

func FuzzAQueryIsRefusedOrSelectsSome(f *testing.F) {
	f.Add("ns", "a=b", "metadata.name=x", "ns", "app=x")
	f.Add("", " ", ",", "", "")
	f.Add("../x", "a in ()", "a", "\xff", "!a")
	f.Add("", "a notin (b),c", "spec.a!=x,spec.a=y", "", "a,")
	f.Fuzz(func(t *testing.T, namespace, labels, fields, other, spaces string) {
		q := Wanted{Name: "Q", Kind: "svc", Place: Place{Namespace: namespace, NamespaceSelector: spaces}}
		if other != "" {
			q.Namespaces = []string{other}
		}
		if err := q.checkNamespaces(); err == nil && (namespace != "" || other != "") && spaces != "" {
			t.Fatalf("%+v is taken", q)
		}
		s, err := query.ParseSelection(labels, fields)
		if err != nil {
			return
		}
		if (labels != "") != (s.Labels != nil) || (fields != "") != (s.Fields != nil) {
			t.Fatalf("%q and %q: %+v", labels, fields, s)
		}
		if s.Labels != nil && s.Labels.Empty() || s.Fields != nil && s.Fields.Empty() {
			t.Fatalf("%q and %q select everything", labels, fields)
		}
	})
}
