package connection

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discreet decodes answers as another serializer does. Its errors quote nothing: apimachinery's
// have the whole object, which may be a Secret.
type discreet struct{ runtime.NegotiatedSerializer }

// DecoderToVersion returns a decoder of objects, and of the objects in events.
func (d discreet) DecoderToVersion(of runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return discreetDecoder{d.NegotiatedSerializer.DecoderToVersion(of, gv)}
}

type discreetDecoder struct{ runtime.Decoder }

func (d discreetDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	o, kind, err := d.Decoder.Decode(data, defaults, into)
	return o, kind, withoutContent(err)
}

// Errors of answers that cannot be decoded.
var (
	errKindless    = errors.New("the server's answer has no kind: it is no Kubernetes object")
	errVersionless = errors.New("the server's answer has no apiVersion: it is no Kubernetes object")
	errUndecoded   = errors.New("the server's answer cannot be decoded (what is wrong would quote it)")
)

// withoutContent returns what is wrong with an answer, without a part of it.
func withoutContent(err error) error {
	switch {
	case err == nil, runtime.IsNotRegisteredError(err): // it names the kind
		return err
	case runtime.IsMissingKind(err):
		return errKindless
	case runtime.IsMissingVersion(err):
		return errVersionless
	}
	return errUndecoded
}
