package testserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// content reads the body as an object of the request's kind.
func (s *Server) content(q *request) (map[string]any, error) {
	media := q.Header.Get("Content-Type")
	if media != "" {
		parsed, _, err := mime.ParseMediaType(media)
		if err != nil {
			return nil, unsupported(written...)
		}
		media = parsed
	}
	raw := q.body
	switch media {
	case "", runtime.ContentTypeJSON:
	case runtime.ContentTypeYAML:
		var err error
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			return nil, undecodable(err)
		}
	case runtime.ContentTypeProtobuf:
		if q.kind.Custom != nil {
			return nil, unsupported(written...)
		}
		return s.fromProtobuf(q)
	default:
		return nil, unsupported(written...)
	}
	return s.fromJSON(q, raw)
}

func undecodable(err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized: %v", err))
}

func (s *Server) fromProtobuf(q *request) (map[string]any, error) {
	o, _, err := protobuf.NewSerializer(s.scheme, s.scheme).Decode(q.body, &q.kind.GroupVersionKind, nil)
	if err != nil {
		return nil, undecodable(err)
	}
	return s.normal(q.kind, o)
}

func (s *Server) fromJSON(q *request, raw []byte) (map[string]any, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, undecodable(err)
	}
	if content == nil {
		return nil, undecodable(errors.New("it is no object"))
	}
	return s.asKind(q, content, raw)
}

// asKind checks that content is of the request's kind, and makes it as the kind has it: without
// fields that the kind does not have.
func (s *Server) asKind(q *request, content map[string]any, raw []byte) (map[string]any, error) {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if is := schema.FromAPIVersionAndKind(apiVersion, kind); is != q.kind.GroupVersionKind {
		switch {
		case apiVersion == "" && kind == "" && q.kind.Custom == nil:
		case kind == "":
			return nil, apierrors.NewBadRequest("Object 'Kind' is missing in the body")
		case is.GroupVersion() != q.kind.GroupVersion():
			return nil, apierrors.NewBadRequest(fmt.Sprintf(
				"the API version in the data (%s) does not match the expected API version (%s)", apiVersion, q.kind.GroupVersion()))
		default:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", kind, is.Version, q.kind.Kind))
		}
	}
	if q.kind.Custom != nil {
		return s.asCustom(q, content, raw)
	}
	o, err := s.scheme.New(q.kind.GroupVersionKind)
	if err != nil {
		return nil, err
	}
	strict, err := kjson.UnmarshalStrict(raw, o)
	if err != nil {
		return nil, cannotBe(q.kind, err.Error())
	}
	var found []string
	for _, e := range strict {
		found = append(found, e.Error())
	}
	if err := s.strict(q, found); err != nil {
		return nil, err
	}
	return s.normal(q.kind, o)
}

// asCustom makes content as a custom kind has it. Its metadata is that of all kinds.
func (s *Server) asCustom(q *request, content map[string]any, raw []byte) (map[string]any, error) {
	var again map[string]any
	twice, err := kjson.UnmarshalStrict(raw, &again)
	if err != nil {
		return nil, undecodable(err)
	}
	var found []string
	for _, e := range twice {
		found = append(found, e.Error())
	}
	unknown, err := plainMetadata(content)
	if err != nil {
		return nil, cannotBe(q.kind, err.Error())
	}
	unknown = append(unknown, q.kind.Custom.Prune(content)...)
	q.kind.Custom.Default(content)
	kinds.Fill(q.kind, content)
	return content, s.strict(q, append(found, unknownFields(unknown)...))
}

// plainMetadata makes the metadata of content as Go's ObjectMeta writes it, and returns the paths
// of what that does not have.
func plainMetadata(content map[string]any) (unknown []string, err error) {
	was, there := content["metadata"]
	if !there {
		return nil, nil
	}
	raw, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	var meta metav1.ObjectMeta
	strict, err := kjson.UnmarshalStrict(raw, &meta)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	for _, e := range strict {
		var f interface{ FieldPath() string }
		if errors.As(e, &f) {
			unknown = append(unknown, "metadata."+f.FieldPath())
		}
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return nil, err
	}
	tidyMetadata(is, meta.ManagedFields)
	content["metadata"] = is
	return unknown, nil
}

// tidyMetadata removes a time that is not there, and keeps managedFields that are empty: they mean
// that nobody shall manage anything.
func tidyMetadata(meta map[string]any, managed []metav1.ManagedFieldsEntry) {
	if meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	if managed != nil && len(managed) == 0 {
		meta["managedFields"] = []any{}
	}
}

func unknownFields(paths []string) (found []string) {
	for _, p := range paths {
		found = append(found, fmt.Sprintf("unknown field %q", p))
	}
	return found
}

// strict says what the client wants to hear of fields that the kind does not have.
func (s *Server) strict(q *request, found []string) error {
	switch q.how.validation {
	case "", "Warn":
		for _, text := range found {
			q.warn(text)
		}
	case "Strict":
		if found != nil {
			return cannotBe(q.kind, "strict decoding error: "+strings.Join(found, ", "))
		}
	}
	return nil
}

// normal is a typed object's content, as its Go type writes it.
func (s *Server) normal(k *kinds.Kind, o runtime.Object) (map[string]any, error) {
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if meta, ok := content["metadata"].(map[string]any); ok {
		accessor, err := apimeta.Accessor(o)
		if err != nil {
			return nil, err
		}
		tidyMetadata(meta, accessor.GetManagedFields())
		if name := accessor.GetName(); !utf8.ValidString(name) {
			meta["name"] = name // protobuf says it, and JSON does not
		}
	}
	kinds.Fill(k, content)
	return content, nil
}

// again is content of a kind after a patch, as the kind has it.
func (s *Server) again(q *request, content map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return s.asKind(q, content, raw)
}
