package output

import (
	"bytes"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/kates"
)

// table prints a table of each kind that has objects: name, state, age. The state is what
// kates.StatusOf reads in the object. A server's own columns would need a request per object, of
// another version than the snapshot's.
type table struct {
	wide, once bool
	printed    bool
}

func (p *table) Whole() bool { return true }

func (p *table) Print(w io.Writer, s Snapshot) error {
	var b bytes.Buffer
	if p.printed {
		b.WriteByte('\n')
	}
	if p.printed = true; !p.once {
		fmt.Fprintf(&b, "Snapshot %d, %s\n", s.Number, s.At.Format(time.TimeOnly))
	}
	first := true
	for _, k := range s.Kinds {
		if len(k.Objects) == 0 {
			continue
		}
		if !first {
			b.WriteByte('\n')
		}
		first = false
		print := printers.NewTablePrinter(printers.PrintOptions{Wide: p.wide})
		if err := print.PrintObj(rows(k, len(s.Kinds) > 1, s.At), &b); err != nil {
			return err
		}
	}
	if first {
		b.WriteString("No resources found\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// rows makes the table of a kind. With several kinds, names begin with the kind.
func rows(k Kind, several bool, now time.Time) *metav1.Table {
	namespaced := false
	for _, o := range k.Objects {
		namespaced = namespaced || o.GetNamespace() != ""
	}
	t := &metav1.Table{}
	if namespaced {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: "Namespace"})
	}
	t.ColumnDefinitions = append(t.ColumnDefinitions,
		metav1.TableColumnDefinition{Name: "Name"},
		metav1.TableColumnDefinition{Name: "Status"},
		metav1.TableColumnDefinition{Name: "Age"},
		metav1.TableColumnDefinition{Name: "Version", Priority: 1},
		metav1.TableColumnDefinition{Name: "Message", Priority: 1},
	)
	for _, o := range k.Objects {
		name := o.GetName()
		if several {
			name = Name(k.Kind, name)
		}
		var cells []any
		if namespaced {
			cells = append(cells, o.GetNamespace())
		}
		status := kates.StatusOf(o)
		cells = append(cells, name, string(status.Phase), age(o.GetCreationTimestamp(), now),
			o.GetResourceVersion(), status.Message)
		for i, cell := range cells {
			cells[i] = plain.Line(cell.(string))
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
	}
	return t
}

func age(since metav1.Time, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since.Time))
}

// deltas prints a line for each object that differs from the snapshot before. In the first
// snapshot all objects are added.
type deltas struct{ printed bool }

func (p *deltas) Whole() bool { return false }

const deltaLine = "%-8s  %-6s  %-20s  %-40s  %s\n"

func (p *deltas) Print(w io.Writer, s Snapshot) error {
	var b bytes.Buffer
	if !p.printed {
		fmt.Fprintf(&b, deltaLine, "SNAPSHOT", "CHANGE", "NAMESPACE", "NAME", "VERSION")
	}
	p.printed = true
	for _, d := range s.Deltas {
		namespace := d.Namespace
		if namespace == "" {
			namespace = "-"
		}
		kind := d.GroupVersionKind().GroupKind()
		for _, k := range s.Kinds {
			if k.Query == d.Query && !k.Kind.Empty() {
				kind = k.Kind
			}
		}
		plain.Fprintf(&b, deltaLine, fmt.Sprint(s.Number), d.DeltaType, namespace, Name(kind, d.Name),
			d.ResourceVersion)
	}
	_, err := w.Write(b.Bytes())
	return err
}
