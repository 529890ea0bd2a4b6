package replay

import (
	"bytes"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kates-go/kates/bench/internal/workload"
)

// kind has the objects of one kind, and what happens to them.
type kind struct {
	resource string
	empty    func() object
	list     func() runtime.Object
	objects  []object
	events   []event
	version  int // of its lists
}

type object interface {
	runtime.Object
	metav1.Object
}

// event is an update of one object.
type event struct {
	object  object
	mark    string
	eventRV string
}

func (e event) key() string { return e.object.GetNamespace() + "/" + e.object.GetName() }

// listRV is the version of lists before the events. Events are newer, objects older.
const listRV = 1_000_000

// kinds makes a number of objects of each kind, and a number of events in all.
func kinds(objects, events int) []kind {
	all := []kind{
		{resource: "pods", empty: func() object { return &corev1.Pod{} }, list: func() runtime.Object { return &corev1.PodList{} }},
		{resource: "services", empty: func() object { return &corev1.Service{} }, list: func() runtime.Object { return &corev1.ServiceList{} }},
		{resource: "configmaps", empty: func() object { return &corev1.ConfigMap{} }, list: func() runtime.Object { return &corev1.ConfigMapList{} }},
	}
	sources := []func(int) object{
		func(i int) object { return workload.Pod(i) },
		func(i int) object { return workload.Service(i) },
		func(i int) object { return workload.ConfigMap(i) },
	}
	for k := range all {
		all[k].version = listRV
		for i := range objects {
			o := sources[k](i)
			o.SetResourceVersion(strconv.Itoa(1 + k*objects + i))
			o.SetUID(workload.UID(k*objects + i))
			all[k].objects = append(all[k].objects, o)
		}
	}
	for i := range events {
		k := &all[i%len(all)]
		k.events = append(k.events, event{
			object: k.objects[i/len(all)%objects], mark: strconv.Itoa(i), eventRV: strconv.Itoa(listRV + 1 + i),
		})
	}
	return all
}

// encoding is everything that is sent in one media type.
type encoding struct{ kinds []encodedKind }

type encodedKind struct {
	list    []byte
	initial []byte // the list as a stream
	events  []byte
}

// encoder writes as an API server does: objects in an envelope, and frames of watch events.
type encoder struct {
	objects runtime.Encoder
	info    runtime.SerializerInfo
}

func newEncoder(mediaType string) (encoder, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok || info.StreamSerializer == nil {
		return encoder{}, fmt.Errorf("there is no serializer for %s", mediaType)
	}
	return encoder{scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), info}, nil
}

func encodeAll(mediaType string, kinds []kind) (*encoding, error) {
	e, err := newEncoder(mediaType)
	if err != nil {
		return nil, err
	}
	all := new(encoding)
	for _, k := range kinds {
		one, err := e.kind(k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.resource, err)
		}
		all.kinds = append(all.kinds, one)
	}
	return all, nil
}

func (e encoder) kind(k kind) (encodedKind, error) {
	list := k.list()
	items := make([]runtime.Object, len(k.objects))
	for i, o := range k.objects {
		items[i] = o
	}
	if err := meta.SetList(list, items); err != nil {
		return encodedKind{}, err
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.Itoa(k.version))
	encoded, err := runtime.Encode(e.objects, list)
	if err != nil {
		return encodedKind{}, err
	}
	var initial, events bytes.Buffer
	for _, o := range k.objects {
		if err := e.frame(&initial, watch.Added, o); err != nil {
			return encodedKind{}, err
		}
	}
	end := k.empty()
	end.SetResourceVersion(strconv.Itoa(k.version))
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	if err := e.frame(&initial, watch.Bookmark, end); err != nil {
		return encodedKind{}, err
	}
	for _, ev := range k.events {
		if err := e.frame(&events, watch.Modified, ev.after()); err != nil {
			return encodedKind{}, err
		}
	}
	return encodedKind{list: encoded, initial: initial.Bytes(), events: events.Bytes()}, nil
}

// after returns the object as the event leaves it.
func (e event) after() object {
	o := e.object.DeepCopyObject().(object)
	o.SetResourceVersion(e.eventRV)
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[workload.Mark] = e.mark
	o.SetAnnotations(annotations)
	return o
}

func (e encoder) frame(to *bytes.Buffer, t watch.EventType, o runtime.Object) error {
	raw, err := runtime.Encode(e.objects, o)
	if err != nil {
		return err
	}
	return e.info.StreamSerializer.Encode(
		&metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: raw}},
		e.info.StreamSerializer.Framer.NewFrameWriter(to))
}
