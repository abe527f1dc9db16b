/*
 * Writes SVG by hand: axes with a grid, a polyline and an entry of the legend for each row. The
 * colours are those of Okabe and Ito, which people with any colour vision can distinguish; further
 * lines are dashed.
 */
#include "sim/plot.h"

#include <math.h>

#define LEFT    64.0
#define TOP     40.0
#define WIDTH   640.0
#define HEIGHT  420.0
#define LEGEND  18.0 /* height of an entry */
#define MARGIN  16.0
#define PADDING 52.0 /* below the plot: numbers and the axis' name */

static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#e69f00", "#56b4e9", "#000000"};
static const char *const dashes[] = {"", "8 4", "2 3", "8 3 2 3"};

struct plot {
    const struct replays *replays;
    struct buf *out;
    int x_max; /* percent */
    int y_max;
    bool workloads; /* there are several: the legend names them */
};

static double plot_x(const struct plot *p, double percent)
{
    return LEFT + WIDTH * percent / p->x_max;
}

static double plot_y(const struct plot *p, double percent)
{
    return TOP + HEIGHT * (1.0 - percent / p->y_max);
}

static void plot_text(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '&')
            buf_put(out, STR("&amp;"));
        else if (c == '<')
            buf_put(out, STR("&lt;"));
        else if (c < 0x20 || c == 0x7f)
            buf_putc(out, '?'); /* XML has no control characters */
        else
            buf_putc(out, s.p[i]);
    }
}

static int plot_step(int max)
{
    return max <= 150 ? 10 : max <= 300 ? 25 : 100;
}

static void plot_grid(const struct plot *p)
{
    struct buf *out = p->out;
    double right = LEFT + WIDTH;
    double bottom = TOP + HEIGHT;
    buf_put(out, STR("<g stroke=\"#dddddd\" fill=\"#444444\">\n"));
    for (int x = 0; x <= p->x_max; x += plot_step(p->x_max))
        buf_printf(out,
                   "<path d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" stroke=\"none\" "
                   "text-anchor=\"middle\">%d</text>\n",
                   plot_x(p, x), TOP, bottom, plot_x(p, x), bottom + 18, x);
    for (int y = 0; y <= p->y_max; y += 10)
        buf_printf(out,
                   "<path d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" stroke=\"none\" "
                   "text-anchor=\"end\">%d</text>\n",
                   LEFT, plot_y(p, y), right, LEFT - 8, plot_y(p, y) + 4, y);
    buf_put(out, STR("</g>\n"));
    buf_printf(out,
               "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#444444\"/>\n"
               "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">arrived card memory, %% of the "
               "capacity</text>\n"
               "<text transform=\"translate(18 %.1f) rotate(-90)\" "
               "text-anchor=\"middle\">allocated, %% of the capacity</text>\n",
               LEFT, TOP, bottom, right, LEFT + WIDTH / 2, bottom + 40, TOP + HEIGHT / 2);
}

static void plot_style(struct buf *out, size_t i)
{
    buf_printf(out, "stroke=\"%s\"", colors[i % COUNT_OF(colors)]);
    const char *dash = dashes[i / COUNT_OF(colors) % COUNT_OF(dashes)];
    if (dash[0] != '\0')
        buf_printf(out, " stroke-dasharray=\"%s\"", dash);
}

static void plot_line(const struct plot *p, size_t i)
{
    const struct replays_row *row = &p->replays->rows[i];
    buf_put(p->out, STR("<polyline fill=\"none\" stroke-width=\"2\" "));
    plot_style(p->out, i);
    buf_put(p->out, STR(" points=\""));
    for (uint32_t k = 0; k <= p->replays->fill; k++) {
        if (row->series[k] >= 0)
            buf_printf(p->out, "%.1f,%.1f ", plot_x(p, k), plot_y(p, row->series[k]));
    }
    buf_put(p->out, STR("\"/>\n"));
}

static void plot_legend(const struct plot *p, size_t i)
{
    const struct replays_row *row = &p->replays->rows[i];
    double y = TOP + HEIGHT + PADDING + LEGEND * (double)i + 12;
    buf_printf(p->out, "<path d=\"M%.1f %.1fh32\" fill=\"none\" stroke-width=\"2\" ", LEFT, y);
    plot_style(p->out, i);
    buf_printf(p->out, "/><text x=\"%.1f\" y=\"%.1f\">", LEFT + 40, y + 4);
    plot_text(p->out, row->policy->name);
    if (p->workloads) {
        buf_put(p->out, STR(", "));
        plot_text(p->out, row->workload->name);
    }
    if (p->replays->once && p->replays->of_cluster)
        buf_put(p->out, row->in_order ? STR(", in the order of creation") : STR(", shuffled"));
    if (row->at_full >= 0)
        buf_printf(p->out, ": %.1f at 100", row->at_full);
    buf_put(p->out, STR("</text>\n"));
}

/* The range of both axes: what any row has, rounded up to tens. */
static void plot_measure(struct plot *p)
{
    int x = 10;
    int y = 10;
    for (size_t i = 0; i < p->replays->n; i++) {
        const struct replays_row *row = &p->replays->rows[i];
        p->workloads = p->workloads || row->workload != p->replays->rows[0].workload;
        for (uint32_t k = 0; k <= p->replays->fill; k++) {
            if (row->series[k] < 0)
                continue;
            x = MAX_OF(x, (int)k);
            y = MAX_OF(y, (int)ceil(row->series[k]));
        }
    }
    p->x_max = (x + 9) / 10 * 10;
    p->y_max = (y + 9) / 10 * 10;
}

void plot_replays(const struct replays *r, struct buf *out)
{
    struct plot p = {.replays = r, .out = out};
    double width = LEFT + WIDTH + MARGIN;
    double height = TOP + HEIGHT + PADDING + LEGEND * (double)r->n + MARGIN;
    plot_measure(&p);
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
               "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\" "
               "fill=\"#222222\">\n<title>Allocated against arrived card memory</title>\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
               width, height, width, height);
    plot_grid(&p);
    for (size_t i = 0; i < r->n; i++)
        plot_line(&p, i);
    for (size_t i = 0; i < r->n; i++)
        plot_legend(&p, i);
    buf_put(out, STR("</svg>\n"));
}
