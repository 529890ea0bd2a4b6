package testserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// shown is content as a version of its kind shows it.
func shown(k *kinds.Kind, content map[string]any, rv int64) map[string]any {
	content = k.Shown(content)
	c := make(map[string]any, len(content))
	for name, value := range content {
		c[name] = value
	}
	c["apiVersion"], c["kind"] = k.GroupVersion().String(), k.Kind
	meta, _ := content["metadata"].(map[string]any)
	m := make(map[string]any, len(meta)+1)
	for name, value := range meta {
		m[name] = value
	}
	if delete(m, "resourceVersion"); rv != 0 {
		m["resourceVersion"] = strconv.FormatInt(rv, 10)
	}
	c["metadata"] = m
	return c
}

// encode writes an object in a form. It is of a kind, or has the type of meta/v1 that it names.
func (s *Server) encode(k *kinds.Kind, f form, content map[string]any) ([]byte, error) {
	switch f.as {
	case "PartialObjectMetadata":
		content = partial(k, content, "meta.k8s.io/"+f.version)
	case "Table":
		content = table(k, content)
	}
	if !f.protobuf {
		raw, err := json.Marshal(content)
		if err == nil && f.yaml {
			raw, err = yaml.JSONToYAML(raw)
		}
		return append(raw, '\n'), err
	}
	o, err := s.typed(content)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = protobuf.NewSerializer(s.scheme, s.scheme).Encode(o, &out)
	return out.Bytes(), err
}

// typed makes an object of the Go type that its kind names.
func (s *Server) typed(content map[string]any) (runtime.Object, error) {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	o, err := s.goType(schema.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, o); err != nil {
		return nil, fmt.Errorf("%s %s: %w", apiVersion, kind, err)
	}
	return o, nil
}

// goType makes an object of a Go type.
func (s *Server) goType(gvk schema.GroupVersionKind) (runtime.Object, error) {
	switch {
	case gvk.Group != metav1.GroupName:
		return s.scheme.New(gvk)
	case gvk.Kind == "PartialObjectMetadata":
		return &metav1.PartialObjectMetadata{}, nil
	case gvk.Kind == "PartialObjectMetadataList":
		return &metav1.PartialObjectMetadataList{}, nil
	}
	return nil, fmt.Errorf("%s has no protobuf form", gvk)
}

// itemsOf are the objects of a list of a kind. An object may have a field items of its own: only
// the kind tells an object from a list.
func itemsOf(k *kinds.Kind, content map[string]any) (items []any, list bool) {
	if content["kind"] != k.Kind+"List" {
		return nil, false
	}
	items, list = content["items"].([]any)
	return items, list
}

// partial is the metadata of an object, or of each object of a list.
func partial(k *kinds.Kind, content map[string]any, apiVersion string) map[string]any {
	items, list := itemsOf(k, content)
	short := map[string]any{"apiVersion": apiVersion, "kind": "PartialObjectMetadata", "metadata": content["metadata"]}
	if !list {
		return short
	}
	short["kind"], short["items"] = "PartialObjectMetadataList", nil
	if meta, _ := content["metadata"].(map[string]any); meta["continue"] == "" {
		meta = maps.Clone(meta)
		delete(meta, "continue")
		short["metadata"] = meta
	}
	if len(items) == 0 {
		return short
	}
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = partial(k, item.(map[string]any), apiVersion)
	}
	short["items"] = all
	return short
}

// table has the name and the age of each object, as a server shows kinds without columns.
func table(k *kinds.Kind, content map[string]any) map[string]any {
	items, list := itemsOf(k, content)
	meta := content["metadata"]
	if !list {
		items = []any{content}
		of, _ := meta.(map[string]any)
		meta = map[string]any{"resourceVersion": of["resourceVersion"]}
	}
	rows := make([]any, len(items))
	for i, item := range items {
		m, _ := item.(map[string]any)["metadata"].(map[string]any)
		rows[i] = map[string]any{"cells": []any{m["name"], m["creationTimestamp"]}, "object": partial(k, item.(map[string]any), "meta.k8s.io/v1")}
	}
	column := func(name, kind, format string) any {
		return map[string]any{"name": name, "type": kind, "format": format, "description": "", "priority": int64(0)}
	}
	return map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": meta, "rows": rows,
		"columnDefinitions": []any{column("Name", "string", "name"), column("Created At", "date", "")},
	}
}

// send answers a request with an object.
func (s *Server) send(w http.ResponseWriter, q *request, code int, content map[string]any) {
	f := q.form
	if content["kind"] == "Status" {
		f.as = ""
	}
	raw, err := s.encode(q.kind, f, content)
	if err != nil {
		s.fail(w, q, err)
		return
	}
	if q.kind.Storage == "endpoints" {
		q.warn("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
	}
	q.announce(w)
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(code)
	_, _ = w.Write(raw) // the client may have gone
}

// announce writes the warnings.
func (q *request) announce(w http.ResponseWriter) {
	for _, text := range q.warnings {
		w.Header().Add("Warning", `299 - `+strconv.Quote(text))
	}
}

// fail answers a request with an error.
func (s *Server) fail(w http.ResponseWriter, q *request, err error) {
	if errors.Is(err, errNoPath) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("404 page not found\n"))
		return
	}
	status := statusOf(err)
	f := form{}
	if q != nil {
		f.protobuf, f.yaml = q.form.protobuf, q.form.yaml
		q.announce(w)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		panic(err) // a Status is no odd type
	}
	delete(content["metadata"].(map[string]any), "creationTimestamp")
	raw, err := s.encode(nil, f, content)
	if err != nil {
		raw, f = fmt.Appendf(nil, "%s", err), form{}
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(raw)
}
