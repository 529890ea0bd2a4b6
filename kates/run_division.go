package kates

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/partition"
	"github.com/kates-go/kates/internal/engine/query"
)

// ShardBy says by what replicas divide the keys of a run ([Sharding.By]).
type ShardBy string

// The ways to divide keys.
const (
	// ShardByNamespace divides by the hashes of namespaces. Of [RunEach], queries whose Key is
	// [ByNamespace] bring the replica's part alone; of a controller, so do the root and what it owns:
	// both are in one namespace.
	ShardByNamespace ShardBy = "namespace"
	// ShardByUID divides by the hashes of UIDs. Of [RunEach], queries whose Key is [ByUID] bring the
	// replica's part alone. Of a controller, so does the root. What it owns is sent whole, and what
	// belongs to other replicas' roots is dropped as it comes.
	ShardByUID ShardBy = "uid"
	// ShardByKey divides by the hashes of the keys. No server can select by these: each replica
	// watches everything.
	ShardByKey ShardBy = "key"
)

// division is how the replicas of a run divide its keys. The zero value divides by their names.
type division struct {
	field shardrange.Field
	whole string // why the watches bring everything; empty: they do not
	// of returns by what a query is divided, "" for one that stays whole. place returns what of a key
	// is hashed; nil: the root's UID.
	of    func(query.Query) shardrange.Field
	place func(key string) string
}

// by names the division in Leases: members with another one divide by names.
func (d *division) by() string { return string(d.field) }

// sharing is the division as partitions know it, nil if their queries are whole.
func (d *division) sharing() *partition.Sharing {
	if d.field == "" {
		return nil
	}
	return &partition.Sharing{Field: d.of, Place: d.place}
}

// The words of [ShardStatus.Streams] where watches are whole.
const (
	wholeByKey = "whole: keys are divided by their hashes, by which no server can select"
	wholeFake  = "whole: a fake is no server that could select"
)

// checkBy returns an error for a way to divide that does not exist.
func (s Sharding) checkBy() error {
	switch s.By {
	case "", ShardByNamespace, ShardByUID, ShardByKey:
		return nil
	}
	return fmt.Errorf("sharding by %q: there are %s, %s and %s", s.By, ShardByNamespace, ShardByUID, ShardByKey)
}

// divideKeys finds out how the replicas of a RunEach divide its keys.
func (s *runSettings) divideKeys(c *Client) error {
	if s.sharding == nil {
		return nil
	}
	has := func(f func(Object) []string) bool {
		return slices.ContainsFunc(s.queries, func(q Query) bool { return q.Key != nil && compile.SameCode(q.Key, f) })
	}
	by := s.sharding.By
	switch {
	case by == "" && has(ByNamespace):
		by = ShardByNamespace
	case by == "" && has(ByUID):
		by = ShardByUID
	case by == ShardByNamespace && !has(ByNamespace):
		return errors.New("sharding by namespace: no query has the Key kates.ByNamespace")
	case by == ShardByUID && !has(ByUID):
		return errors.New("sharding by UID: no query has the Key kates.ByUID")
	}
	key, field := ByNamespace, shardrange.Namespace
	switch {
	case c.core.Fake != nil:
		s.division.whole = wholeFake
		return nil
	case by == ShardByUID:
		key, field = ByUID, shardrange.UID
	case by != ShardByNamespace:
		s.division.whole = wholeByKey
		return nil
	}
	s.division = division{field: field, place: func(key string) string { return key }, of: func(q query.Query) shardrange.Field {
		if compile.SameCode(q.Key, key) {
			return field
		}
		return ""
	}}
	return nil
}

// divideRoots finds out how the replicas of a controller divide its roots. The targets are all
// fields of its struct.
func (s *runSettings) divideRoots(c *Client, targets []compile.Wanted) error {
	if s.sharding == nil {
		return nil
	}
	switch {
	case c.core.Fake != nil:
		s.division.whole = wholeFake
		return nil
	case s.sharding.By == ShardByKey:
		s.division.whole = wholeByKey
		return nil
	}
	fields := map[compile.Role]shardrange.Field{compile.Root: shardrange.UID, compile.Owned: shardrange.Controller}
	s.division.field = shardrange.UID
	if s.sharding.By == ShardByNamespace {
		s.division.field, s.division.place = shardrange.Namespace, namespaceOfKey
		fields = map[compile.Role]shardrange.Field{compile.Root: shardrange.Namespace, compile.Owned: shardrange.Namespace}
	}
	roles := make(map[string]compile.Role)
	for _, t := range targets {
		roles[t.Name] = t.Role
	}
	s.division.of = func(q query.Query) shardrange.Field { return fields[roles[q.Name]] }
	return nil
}

// namespaceOfKey is the namespace in the key of a root that has one.
func namespaceOfKey(key string) string {
	namespace, _, _ := strings.Cut(key, "/")
	return namespace
}

// divisible returns an error if the roots of a controller cannot be divided as is wanted.
func (p *controlled) divisible(ctx context.Context, fields compile.Struct) error {
	if p.settings.division.field != shardrange.Namespace {
		return nil
	}
	root, err := fields.Root()
	if err != nil {
		return err
	}
	kind, err := p.client.compiler().Mapping(ctx, root)
	if err == nil && kind.Scope.Name() == meta.RESTScopeNameRoot {
		err = fmt.Errorf("sharding by namespace: %s have none", kind.Resource.GroupResource())
	}
	return err
}

// streamsOf says in words what the queries of a divided run bring.
func streamsOf(all []query.Status) string {
	var said []string
	texts := make(map[string][]string)
	for _, q := range all {
		if q.Shard == "" {
			continue
		}
		if texts[q.Shard] == nil {
			said = append(said, q.Shard)
		}
		texts[q.Shard] = append(texts[q.Shard], q.Name)
	}
	if len(said) == 1 {
		return said[0]
	}
	for i, text := range said {
		said[i] = strings.Join(texts[text], ", ") + ": " + text
	}
	return strings.Join(said, "; ")
}
