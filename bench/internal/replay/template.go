package replay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kates-go/kates/bench/internal/workload"
)

// member is what differs between the pods of a crowd. All of it has a fixed width, so that each
// pod is a copy of the same bytes with other digits.
type member struct {
	number  int // of the pod
	version int // ten digits
	mark    int // 0: no event has changed it
}

// slot is a place for digits in the bytes of a pod. Its text stands there in the template.
type slot struct {
	text   string
	digits func(m member) int
}

var slots = []slot{
	{"@POD@NO@", func(m member) int { return m.number }},
	{"@APP@N@", func(m member) int { return m.number / 10 }},
	{"@TEAM@", func(m member) int { return m.number % 20 }},
	{"@NODE@", func(m member) int { return m.number % 5000 }},
	{"@UNIQUE@NO@", func(m member) int { return m.number * 2654435761 % 100_000_000_000 }},
	{"@VERSION@@", func(m member) int { return m.version }},
	{"@MARKED@NUM@", func(m member) int { return m.mark }},
}

// template makes the bytes of pods.
type template struct {
	bytes  []byte
	places []place
}

type place struct {
	at, width int
	digits    func(m member) int
}

// crowdPod is the pod that all of a crowd are copies of, with the texts of the slots in it.
func crowdPod() (*corev1.Pod, error) {
	const sample = 99_990 // its application has four digits
	p, err := workload.RunningPod(sample)
	if err != nil {
		return nil, err
	}
	p.Annotations[workload.Mark] = "@MARKED@NUM@"
	p.ResourceVersion = "@VERSION@@"
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	app := fmt.Sprintf("%010x", sample/10*2654435761%(1<<40))
	text = []byte(strings.NewReplacer(
		workload.PodName(sample), "app-@APP@N@-7c9d8b6f54-@POD@NO@", "app-9999", "app-@APP@N@", app, "000@APP@N@",
		workload.Namespace(sample), "team-@TEAM@", p.Spec.NodeName, "ip-@NODE@.compute.internal",
		p.Status.PodIP, "10.@POD@NO@", fmt.Sprintf("%064x", sample*7919+1), strings.Repeat("0", 53)+"@UNIQUE@NO@",
		fmt.Sprintf("%064x", sample+1), strings.Repeat("a", 53)+"@UNIQUE@NO@",
	).Replace(string(text)))
	p = &corev1.Pod{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, err
	}
	p.UID = "1d9f2c4a-9d2c-4f7a-8a51-0@UNIQUE@NO@"
	return p, nil
}

// newTemplate finds the slots in the bytes of a pod.
func newTemplate(raw []byte) template {
	t := template{bytes: raw}
	for _, s := range slots {
		for from := 0; ; {
			i := bytes.Index(raw[from:], []byte(s.text))
			if i < 0 {
				break
			}
			t.places = append(t.places, place{from + i, len(s.text), s.digits})
			from += i + len(s.text)
		}
	}
	return t
}

// append appends a pod.
func (t template) append(to []byte, m member) []byte {
	from := len(to)
	to = append(to, t.bytes...)
	for _, p := range t.places {
		n := p.digits(m)
		for i := from + p.at + p.width - 1; i >= from+p.at; i-- {
			to[i] = byte('0' + n%10)
			n /= 10
		}
	}
	return to
}

// Protobuf's fields of the API's envelopes, see runtime.Unknown, metav1.WatchEvent and
// runtime.RawExtension.
func field(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

func typed(apiVersion, kind string) []byte {
	return field(nil, 1, field(field(nil, 1, []byte(apiVersion)), 2, []byte(kind)))
}

// enveloped is an object in the envelope of its kind.
func enveloped(kind string, raw []byte) []byte {
	return field(append([]byte("k8s\x00"), typed("v1", kind)...), 2, raw)
}

// framed is an event of a watch.
func framed(t watch.EventType, kind string, raw []byte) []byte {
	event := field(field(nil, 1, []byte(t)), 2, field(nil, 1, enveloped(kind, raw)))
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)
}

// listStart is what comes before the items of a list, of which there are so many bytes.
func listStart(kind, version, token string, items int) []byte {
	meta := field(nil, 2, []byte(version))
	if token != "" {
		meta = field(meta, 3, []byte(token))
	}
	head := field(nil, 1, meta)
	start := append([]byte("k8s\x00"), typed("v1", kind+"List")...)
	start = protowire.AppendTag(start, 2, protowire.BytesType)
	start = protowire.AppendVarint(start, uint64(len(head)+items))
	return append(start, head...)
}

func digits(n int) string { return strconv.Itoa(n) }
