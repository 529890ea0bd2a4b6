package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// known are the built-in kinds, and the forms of all objects.
var known = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	return s
}()

var wire = protobuf.NewSerializer(known, known)

// toProtobuf encodes an object of a built-in kind.
func toProtobuf(asJSON []byte) ([]byte, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(asJSON, nil, nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = wire.Encode(object, &out)
	return out.Bytes(), err
}

// fromProtobuf decodes an object of a built-in kind, as JSON would.
func fromProtobuf(content []byte) (any, error) {
	object, kind, err := wire.Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return generic(object)
}

func generic(object runtime.Object) (any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out any
	return out, utiljson.Unmarshal(text, &out)
}

// protobufEvents reads the events of a watch in protobuf.
type protobufEvents struct{ frames io.ReadCloser }

func newProtobufEvents(body io.ReadCloser) protobufEvents {
	return protobufEvents{protobuf.LengthDelimitedFramer.NewFrameReader(body)}
}

func (p protobufEvents) next() (event, error) {
	var frame []byte
	for {
		part := make([]byte, 64<<10)
		n, err := p.frames.Read(part)
		frame = append(frame, part[:n]...)
		if err == io.ErrShortBuffer {
			continue
		}
		if err != nil {
			return event{}, err
		}
		break
	}
	var e metav1.WatchEvent
	raw := protobuf.NewRawSerializer(known, known)
	if _, _, err := raw.Decode(frame, nil, &e); err != nil {
		return event{}, fmt.Errorf("decode an event: %w", err)
	}
	object, err := fromProtobuf(e.Object.Raw)
	return event{e.Type, object}, err
}
