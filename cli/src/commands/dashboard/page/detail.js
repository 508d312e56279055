// The dialog for one key: its findings, its figures, and its charts.

// The largest number of columns in a chart of spans.
const MOST_COLUMNS = 96;

class Detail {
  constructor(range) {
    this.range = range;
    this.id = null;
    this.dialog = byId('detail');
    this.charts = {
      items: curves('Items over time', short, true),
      rate: curves('Rate over time', percent),
      bytes: curves('Memory over time', bytes),
      window: columns('Distinct members by span', short),
    };
    this.parts = {};
    const titles = [['items', 'Items'], ['rate', 'Rate of false positives'], ['bytes', 'Memory'],
      ['window', 'Distinct members in the last …']];
    for (const [name, title] of titles) {
      const head = el('h3', {}, title);
      const key = el('span', {});
      const part = el('section', {}, el('div', { class: 'chart-head' }, head, key), this.charts[name].host);
      this.parts[name] = { part, head, key };
      byId('detail-charts').append(part);
    }
    byId('detail-close').addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('click', (event) => { if (event.target === this.dialog) this.dialog.close(); });
    this.dialog.addEventListener('close', () => {
      this.id = null;
      if (location.hash.startsWith('#key=')) history.replaceState(null, '', location.pathname + location.search);
    });
    addEventListener('hashchange', () => this.follow());
  }

  // Opens the key that the page's address names, and closes the dialog if it names none.
  follow() {
    const id = location.hash.startsWith('#key=') ? location.hash.slice(5) : null;
    if (!id) {
      if (this.dialog.open) this.dialog.close();
      return;
    }
    this.id = id;
    for (const chart of Object.values(this.charts)) { chart.at = null; chart.none('Reading'); chart.data = null; }
    this.row = null;
    this.draw();
    if (!this.dialog.open) this.dialog.showModal();
    this.dialog.scrollTop = 0;
    this.read();
  }

  show(state) {
    this.state = state;
    if (this.id) {
      this.draw();
      this.read();
    } else if (location.hash.startsWith('#key=') && known(state.looked)) this.follow();
  }

  draw() {
    const found = this.state && this.state.rows.find((row) => row.id === this.id);
    this.row = found || this.row;
    const { row } = this;
    setText(byId('detail-key'), row ? row.key : 'No such key');
    setText(byId('detail-kind'), row ? kindOf(row) : '');
    if (!row) {
      byId('detail-facts').replaceChildren();
      byId('detail-findings').replaceChildren();
      return;
    }
    const lines = found ? row.findings.map((finding) => findingLine(finding)) : [findingLine({
      severity: 'notice', wrong: 'The key is gone, or is left out now. These are the last figures seen of it.',
    })];
    const all = JSON.stringify(found ? row.findings : null);
    if (all !== this.drawn) byId('detail-findings').replaceChildren(...lines);
    this.drawn = all;
    const facts = [
      [isCounter(row) ? 'Members' : 'Items', count(row.items)],
      ['Capacity', count(row.capacity)],
      ['Fill', known(row.fill) ? percent(Number(row.fill.toPrecision(3))) : ''],
      [isCounter(row) ? 'Standard error now' : 'Rate now', rate(row.rate)],
      [isCounter(row) ? 'Error asked' : 'Rate asked', percent(row.asked)],
      ['Sub-filters', count(row.filters)],
      ['Memory', bytes(row.bytes)],
      ['Bytes an item', row.items > 0 && known(row.bytes) ? (row.bytes / row.items).toPrecision(3) : ''],
      ['Time to live', lived(row)],
      ['In the last hour', known(row.growth) ? `${row.growth < 0 ? '−' : '+'}${count(Math.abs(row.growth))}` : ''],
      ['At that pace full in', this.fullIn(row)],
      ['Server', row.server || ''],
    ];
    byId('detail-facts').replaceChildren(...facts.filter(([, value]) => value !== '')
      .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
  }

  fullIn(row) {
    const left = row.items / row.fill - row.items;
    if (!(row.growth > 0) || !(left > 0) || known(row.window_seconds)) return '';
    const seconds = (left / row.growth) * row.growth_seconds;
    return seconds < 366 * 86400 ? span(seconds) : 'more than a year';
  }

  async read() {
    const id = this.id;
    let series;
    try {
      series = await ask(`/api/series?key=${encodeURIComponent(id)}&seconds=${this.range.seconds}`);
    } catch {
      // The old charts stay visible; the bar at the top says that the server does not answer.
      return;
    }
    if (id !== this.id || !this.row) return;
    const { row } = this;
    const line = axis(series, this.range.seconds, series.now);
    const word = isCounter(row) ? 'members' : 'items';
    this.parts.items.head.textContent = isCounter(row) ? 'Members' : 'Items';
    const capacity = isCounter(row) ? [] : [{ name: 'capacity', values: series.capacity, limit: true, exact: count }];
    this.charts.items.show({ ...line, lines: [{ name: word, values: series.items, exact: count }, ...capacity] });
    this.parts.items.key.replaceChildren(legend([[word], ...capacity.map(({ name }) => [name, true])]));
    this.parts.rate.part.hidden = !series.rate.some(known);
    this.parts.rate.head.textContent = isCounter(row) ? 'Standard error' : 'Rate of false positives';
    this.charts.rate.show({ ...line, lines: [{ name: 'now', values: series.rate },
      { name: 'asked', values: series.times.map(() => row.asked), limit: true }] });
    this.parts.rate.key.replaceChildren(legend([['now'], ['asked', true]]));
    const exact = (value) => `${count(value)} B`;
    this.charts.bytes.show({ ...line, lines: [{ name: 'memory', values: series.bytes, exact }] });
    this.parts.window.part.hidden = !row.has_slices;
    if (row.has_slices) this.charts.window.show({ items: this.spans(series.window || []), why: series.window_trouble });
  }

  // The rows of LC.HISTORY, from the longest span to the shortest. Rows are left out if the reply has more than
  // MOST_COLUMNS.
  spans(rows) {
    const [newest] = rows;
    const every = Math.ceil(rows.length / MOST_COLUMNS) || 1;
    const slice = rows.length > 1 ? newest[0] - rows[1][0] : 0;
    const isClock = newest && Math.abs(newest[0] - Date.now() / 1000) < slice * 2 + 120;
    return rows.map(([start, value], at) => {
      const long = span(newest[0] - start + slice);
      const since = isClock ? `since ${moment(start * 1000)}` : `since ${at} slices ago`;
      const label = long.split(' ').slice(0, 2).join(' ');
      return { value, label, lines: [`${count(value)} members`, `last ${long} at most`, since] };
    }).filter((_, at) => at % every === 0 || at === rows.length - 1).reverse();
  }
}
