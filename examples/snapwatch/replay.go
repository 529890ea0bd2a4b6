package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

// recorded is what a list or a watch of a recording was about. Only what was recorded can be
// played, so a replay asks for just that.
type recorded struct {
	resource       schema.GroupResource
	namespace      string
	labels, fields string
	metadata       bool
}

// compare orders what was recorded: the order of the requests is chance.
func (r recorded) compare(o recorded) int {
	return cmp.Or(cmp.Compare(r.resource.Resource, o.resource.Resource),
		cmp.Compare(r.resource.Group, o.resource.Group), cmp.Compare(r.namespace, o.namespace),
		cmp.Compare(r.labels, o.labels), cmp.Compare(r.fields, o.fields))
}

// recordedKinds returns what a recording lists and watches. The format is in docs/recording.md.
func recordedKinds(file string) (all []recorded, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	packed, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	lines := bufio.NewReader(packed)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil { // the end, or where the program that recorded has crashed
			return all, nil
		}
		var record struct {
			Type, Path, Query, Accept string
			Size                      int64
		}
		if err := json.Unmarshal(text, &record); err != nil {
			return nil, fmt.Errorf("read %s: a record is no JSON: %w", file, err)
		}
		if record.Type == "request" {
			if r, ok := listed(record.Path, record.Query, record.Accept); ok && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
		if record.Size > 0 {
			if _, err := io.CopyN(io.Discard, lines, record.Size+1); err != nil {
				return all, nil
			}
		}
	}
}

// listed reads the request of a list or a watch of objects.
func listed(path, query, accept string) (r recorded, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 3 && parts[0] == "apis":
		r.resource.Group, parts = parts[1], parts[3:]
	default:
		return r, false
	}
	if len(parts) == 3 && parts[0] == "namespaces" {
		r.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) != 1 {
		return r, false // discovery, or a single object
	}
	r.resource.Resource = parts[0]
	q, err := url.ParseQuery(query)
	if err != nil {
		return r, false
	}
	r.labels, r.fields = q.Get("labelSelector"), q.Get("fieldSelector")
	r.metadata = strings.Contains(accept, "as=PartialObjectMetadata")
	return r, true
}

var errNothingRecorded = errors.New("the recording has no list and no watch of such kinds")

// recordedQueries makes kinds of what was recorded: all of it, or the kinds that are asked for.
func recordedQueries(
	ctx context.Context, client *kates.Client, file string, wanted []asked, s selection,
) ([]*kind, error) {
	all, err := recordedKinds(file)
	if err != nil {
		return nil, err
	}
	place := map[schema.GroupResource]int{} // of the kinds that are asked for
	for _, a := range wanted {
		found, err := s.find(ctx, client, a.kind)
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			if _, ok := place[k.resource]; !ok {
				place[k.resource] = len(place)
			}
		}
	}
	slices.SortFunc(all, func(a, b recorded) int {
		return cmp.Or(cmp.Compare(place[a.resource], place[b.resource]), a.compare(b))
	})
	times := map[schema.GroupResource]int{}
	for _, r := range all {
		times[r.resource]++
	}
	var kinds []*kind
	for _, r := range all {
		if _, ok := place[r.resource]; !ok && len(wanted) > 0 {
			continue
		}
		k, err := r.kind(ctx, client, s)
		if err != nil {
			continue // its discovery was not recorded
		}
		if times[r.resource] > 1 {
			k.title += " " + r.where()
		}
		kinds = append(kinds, k)
	}
	if len(kinds) == 0 {
		return nil, errNothingRecorded
	}
	return kinds, s.finish(kinds)
}

// kind makes the query that was recorded.
func (r recorded) kind(ctx context.Context, client *kates.Client, s selection) (*kind, error) {
	s.namespace, s.labels, s.fields, s.metadataOnly = r.namespace, r.labels, r.fields, r.metadata
	mapping, err := client.Mapping(ctx, r.resource.String())
	if err != nil {
		return nil, err
	}
	return s.mapped(mapping), nil
}

// where tells apart what was recorded of one kind.
func (r recorded) where() string {
	return strings.Join(slices.DeleteFunc([]string{
		"in " + cmp.Or(r.namespace, "all namespaces"), r.labels, r.fields,
	}, func(s string) bool { return s == "" }), " ")
}
