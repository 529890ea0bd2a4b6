package rights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Target is a resource, and the objects of it that methods are called for.
type Target struct {
	Group, Resource string
	Namespace, Name string
	// Reads: the client reads an object before it deletes it.
	Reads bool
}

// method is what a method of a client sends.
type method struct {
	verbs  []string // on the object
	posts  []string // on objects without a name in the path, so no name can narrow these
	status []string // on the status
	logs   []string // on the log
	owner  []string // on the finalizers, as admission counts it
	// fenced: under a lease, the object is read if no watch shows it.
	fenced  bool
	deletes bool
}

// methods are named as the abilities of package kates.
var methods = map[string]method{
	"get":          {verbs: []string{"get"}},
	"list":         {posts: []string{"list"}},
	"create":       {posts: []string{"create"}},
	"update":       {verbs: []string{"update"}, fenced: true},
	"updateStatus": {status: []string{"update"}, fenced: true},
	"patch":        {verbs: []string{"patch"}, fenced: true},
	"apply":        {verbs: []string{"create", "patch"}, fenced: true},
	"upsert":       {verbs: []string{"get", "update"}, posts: []string{"create"}},
	"modify":       {verbs: []string{"get", "patch"}},
	"modifyStatus": {verbs: []string{"get"}, status: []string{"patch"}},
	"delete":       {verbs: []string{"delete"}, fenced: true, deletes: true},
	"deleteAll":    {verbs: []string{"delete", "get"}, posts: []string{"list"}},
	"applyOwned":   {verbs: []string{"create", "delete", "get", "patch"}, posts: []string{"list"}},
	"own":          {owner: []string{"update"}},
	"readLogs":     {verbs: []string{"get"}, logs: []string{"get"}},
}

// ofSubresources are the methods that have a form for a subresource. Each sends its verb.
var ofSubresources = map[string]bool{"get": true, "create": true, "update": true, "patch": true}

// Use adds what a method needs for a target. The method may have a subresource: create/eviction.
func (s *Set) Use(of Target, name string) error {
	on := func(subresource string) Right {
		return Right{Group: of.Group, Resource: of.Resource + subresource, Namespace: of.Namespace, Name: of.Name}
	}
	name, subresource, sub := strings.Cut(name, "/")
	m, known := methods[name]
	switch {
	case !known:
		return fmt.Errorf("there is no ability %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
	case sub && subresource == "":
		return errors.New("a subresource without a name")
	case sub && !ofSubresources[name]:
		return fmt.Errorf("there is no method to %s a subresource (%s)", name, subresource)
	case m.logs != nil && (of.Group != "" || of.Resource != "pods"):
		return fmt.Errorf("%s have no logs: only pods have", of.Resource)
	case sub:
		s.Add(on("/"+subresource), name)
		if m.fenced || name == "create" && subresource == "eviction" {
			s.fence(on(""))
		}
		return nil
	}
	s.Add(on(""), m.verbs...)
	s.Add(on("/status"), m.status...)
	s.Add(on("/log"), m.logs...)
	s.Add(on("/finalizers"), m.owner...)
	unnamed := on("")
	unnamed.Name = ""
	s.Add(unnamed, m.posts...)
	if m.deletes && of.Reads {
		s.Add(on(""), "get")
	}
	if m.fenced {
		s.fence(on(""))
	}
	return nil
}

func (s *Set) fence(r Right) {
	r.Verb = "get"
	s.Fence(r)
}
