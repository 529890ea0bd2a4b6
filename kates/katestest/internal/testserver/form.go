package testserver

import (
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// form is how an answer is written.
type form struct {
	protobuf, yaml bool
	as             string // PartialObjectMetadata or Table; "": the object itself
	version        string // of meta.k8s.io, if as is given
}

func (f form) contentType() string {
	switch {
	case f.protobuf:
		return runtime.ContentTypeProtobuf
	case f.yaml:
		return runtime.ContentTypeYAML
	}
	return runtime.ContentTypeJSON
}

// formOf chooses the first form that the client takes and the server has.
func formOf(q *request) (form, error) {
	accept := q.Header.Get("Accept")
	if accept == "" {
		return form{}, nil
	}
	anyKnown, wantsProtobuf := false, false
	for _, one := range strings.Split(accept, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(one))
		if err != nil {
			continue
		}
		var f form
		switch media {
		case runtime.ContentTypeJSON, "*/*":
		case runtime.ContentTypeYAML:
			f.yaml = true
		case runtime.ContentTypeProtobuf:
			f.protobuf, wantsProtobuf = true, true
		default:
			continue
		}
		anyKnown = true
		if as := params["as"]; as != "" {
			if !f.turns(as, params["g"], params["v"], q) {
				continue
			}
		} else if f.protobuf && q.kind.Custom != nil {
			continue
		}
		return f, nil
	}
	return form{protobuf: wantsProtobuf}, notAcceptable(q.kind, anyKnown)
}

// turns makes the form one of meta.k8s.io, and reports whether there is such a one.
func (f *form) turns(as, group, version string, q *request) bool {
	if group != metav1.GroupName || version != "v1" && version != "v1beta1" {
		return false
	}
	f.version = version
	list := q.Method == http.MethodGet && q.name == "" && !q.watches()
	switch as {
	case "PartialObjectMetadata":
		f.as = as
		return !list
	case "PartialObjectMetadataList":
		f.as = "PartialObjectMetadata"
		return list || q.watches()
	case "Table":
		f.as = as
		return !f.protobuf
	}
	return false
}
