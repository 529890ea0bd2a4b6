// Package output prints snapshots as kubectl prints lists: as JSON, YAML, names, templates and
// tables, and, which kubectl has not, as the deltas between them. It knows no client.
//
// In JSON, YAML and templates a snapshot is what `kubectl get services,pods -o json` prints: one
// List (v1) of the objects of all kinds, in the order of the kinds, then by namespace and name. So
// the same jsonpath fits both. Secrets are printed whole there, as kubectl does. No other form has
// more of an object than its name, its state and its times.
//
// [Flags] is the type to start from.
package output

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kates-go/kates/kates"
)

// Snapshot is what is printed. The objects are shared: a printer does not write to them.
type Snapshot struct {
	Number int
	At     time.Time
	Kinds  []Kind
	Deltas []*kates.Delta
}

// Kind is what a snapshot has of one kind.
type Kind struct {
	// Query is the name by which deltas name the kind.
	Query   string
	Kind    schema.GroupKind
	Objects []*unstructured.Unstructured
}

// Printer prints snapshots, one after another.
type Printer interface {
	Print(w io.Writer, s Snapshot) error
	// Whole reports whether it prints more than the metadata of objects.
	Whole() bool
}

// Flags are the flags that choose a printer.
type Flags struct {
	print  *genericclioptions.PrintFlags
	format string
	// ManagedFields: they are wanted, where objects are printed whole.
	ManagedFields bool
	// Once: one snapshot is printed, so nothing has to say where it ends.
	Once bool
}

// NewFlags returns flags with kubectl's defaults.
func NewFlags() *Flags {
	f := &Flags{print: genericclioptions.NewPrintFlags("")}
	f.print.OutputFormat = &f.format
	return f
}

// own are the formats that are not cli-runtime's.
var own = []string{"table", "wide", "deltas", "custom-columns"}

// Formats are all of them.
func Formats() []string {
	all := slices.Concat(genericclioptions.NewPrintFlags("").AllowedFormats(), own)
	slices.Sort(all)
	return all
}

// AddFlags adds the flags to a command.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.format, "output", "o", "", "Output format. One of: ("+strings.Join(Formats(), ", ")+
		"). Each snapshot is printed whole.")
	flags.BoolVar(&f.ManagedFields, "show-managed-fields", false,
		"If true, keep the managedFields when printing objects in JSON or YAML format.")
	f.print.TemplatePrinterFlags.AddFlags(cmd)
	f.print.OutputFlagSpecified = func() bool { return flags.Changed("output") }
}

// Given reports whether a format was chosen.
func (f *Flags) Given() bool {
	return f.format != "" || *f.print.TemplatePrinterFlags.TemplateArgument != ""
}

// Printer returns the printer that the flags choose.
func (f *Flags) Printer() (Printer, error) {
	switch name, spec, _ := strings.Cut(f.format, "="); {
	case f.format == "table" || f.format == "wide":
		return &table{wide: f.format == "wide", once: f.Once}, nil
	case f.format == "deltas":
		return &deltas{}, nil
	case name == "custom-columns":
		return newColumns(spec, f.Once)
	}
	// A printer that omits the managed fields copies all objects for that. The watch drops the
	// fields instead, when an object comes.
	f.print.JSONYamlPrintFlags.ShowManagedFields = true
	p, err := f.print.ToPrinter()
	if genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: %s",
			f.format, strings.Join(Formats(), ","))
	}
	if err != nil {
		return nil, err
	}
	l := &list{ResourcePrinter: p, names: f.format == "name", once: f.Once}
	l.lines = l.names || !slices.Contains(f.print.JSONYamlPrintFlags.AllowedFormats(), strings.ToLower(f.format))
	return l, nil
}

// list prints a snapshot as one List.
type list struct {
	printers.ResourcePrinter
	names, once bool
	// lines: what it prints does not say where it ends, as JSON and YAML do.
	lines   bool
	printed bool
}

func (p *list) Whole() bool { return !p.names }

func (p *list) Print(w io.Writer, s Snapshot) error {
	var b bytes.Buffer
	if err := p.PrintObj(List(s.Kinds), &b); err != nil {
		return err
	}
	// Each text is on lines of its own, and an empty line is between the names of two snapshots.
	if p.lines && !p.once && b.Len() > 0 && !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	if p.names && p.printed {
		b = *bytes.NewBuffer(append([]byte("\n"), b.Bytes()...))
	}
	p.printed = true
	_, err := w.Write(b.Bytes())
	return err
}

// List makes one list of the objects of all kinds. They are not copied.
func List(kinds []Kind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	l.Items = []unstructured.Unstructured{}
	for _, k := range kinds {
		for _, o := range k.Objects {
			l.Items = append(l.Items, *o)
		}
	}
	return l
}

// Name is how kubectl names an object: service/web, deployment.apps/web.
func Name(kind schema.GroupKind, name string) string {
	return strings.ToLower(kind.String()) + "/" + name
}
