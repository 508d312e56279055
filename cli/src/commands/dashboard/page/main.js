// The page as a whole: it asks for the state at intervals, and says so plainly when it gets no answer.

const RANGES = [[3600, '1 hour'], [86400, '1 day'], [604800, '1 week']];
// Number of findings that are shown until the user asks for all.
const FIRST_FINDINGS = 6;

const range = { seconds: 3600 };
const page = { state: null, offset: 0, paused: false, all: false, lost: null, timer: 0, shown: '' };
const keys = new Keys();
const detail = new Detail(range);

// The time by the clock of the machine that runs the dashboard, in milliseconds.
const serverNow = () => Date.now() + page.offset;

// A finding about everything that cannot be reached or read, since nothing is known about it.
function unreached(page) {
  const trouble = troubleOf(page);
  if (!trouble) return [];
  const wrong = `${trouble.head} since ${moment(trouble.since, true)}`;
  const severity = trouble.isDown ? 'critical' : 'warning';
  return [{ finding: { severity, wrong, advice: trouble.lines.join(' ') }, key: null }];
}

// A finding about the keys of other nodes, if the server is one node of a cluster.
function unlisted(state) {
  const wrong = 'is one node of a cluster, whose other keys are not listed';
  const advice = 'start the dashboard with --cluster';
  return state.is_part ? [{ finding: { severity: 'warning', wrong, advice, about: state.server }, key: null }] : [];
}

// The text if no finding exists. It has a tick only after all keys have been judged.
function nothingWrong(state, all) {
  if (!known(state.looked)) return el('li', { class: 'finding none notice' }, el('p', {}, 'Not looked yet.'));
  if (state.unjudged) {
    return el('li', { class: 'finding none notice' }, el('p', {}, badge('notice', 'Nothing so far'),
      `${count(all - state.unjudged)} of ${count(all)} keys have been looked at. `
        + 'The others follow, some at each look.'));
  }
  return el('li', { class: 'finding none fine' }, el('p', {}, badge('fine', 'Nothing'),
    `${count(all)} keys were looked at, and all are as they should be.`));
}

function drawFindings(state) {
  const about = [...unlisted(state), ...state.nodes.flatMap((node) =>
    node.findings.map((finding) => ({ finding: { ...finding, about: node.name }, key: null })))];
  const ofKeys = state.rows.flatMap((row) => row.findings.map((finding) => ({ finding, key: row })));
  const rank = ({ finding }) => SEVERITIES[severityOf(finding.severity)].rank;
  const size = ({ key }) => key?.bytes || 0;
  const all = [...unreached(page), ...[...about, ...ofKeys].sort((a, b) => rank(b) - rank(a) || size(b) - size(a))];
  const byGroup = new Map();
  for (const found of all) {
    const group = groupOf(found);
    if (!byGroup.has(group)) byGroup.set(group, []);
    byGroup.get(group).push(found);
  }
  const groups = [...byGroup.values()].sort(([a], [b]) => rank(b) - rank(a));
  const keysInAll = state.rows.length + state.left_out;
  const seen = all.map(({ finding, key }) => [finding, key?.id]);
  const drawn = JSON.stringify([page.all, seen, known(state.looked), state.unjudged, keysInAll]);
  const counts = ['critical', 'warning', 'notice'].map(
    (name) => [name, all.filter(({ finding }) => severityOf(finding.severity) === name).length]);
  const urgent = counts[0][1] + counts[1][1];
  const mark = page.lost || state.troubles.length ? '⚠ ' : urgent ? `(${urgent}) ` : '';
  document.title = `${mark}Rollcall · ${state.server}`;
  if (drawn === page.shown) return;
  page.shown = drawn;
  const parts = counts.filter(([, number]) => number)
    .map(([name, number]) => `${count(number)} ${name}${number > 1 && name !== 'critical' ? 's' : ''}`);
  if (state.unjudged) parts.push(`${count(state.unjudged)} of ${count(keysInAll)} keys not looked at yet`);
  setText(byId('wrong-count'), parts.join(' · '));
  const some = page.all ? groups : groups.slice(0, FIRST_FINDINGS);
  const open = new Set([...byId('findings').querySelectorAll('details[open]')].map((node) => node.dataset.name));
  const lines = some.map(([{ finding, key }, ...others]) => findingLine(finding, key, others));
  rebuild(byId('findings'), lines.length ? lines : [nothingWrong(state, keysInAll)]);
  for (const node of byId('findings').querySelectorAll('details')) node.open = open.has(node.dataset.name);
  byId('findings-more').hidden = groups.length <= FIRST_FINDINGS;
  setText(byId('findings-more'), page.all ? 'Show fewer' : `Show all ${count(groups.length)}`);
  byId('findings-more').setAttribute('aria-expanded', String(page.all));
}

// The cards with figures of all keys together. Each has a figure, a line of text about it, and a chart.
const CARDS = [
  { name: 'items', head: 'Filters', chart: curves('Items in all filters', short, true), word: 'items', exact: count,
    figure: (totals) => [short(totals.items), ` items in ${count(totals.filters)} filters`],
    note: ({ items, capacity }) =>
      (capacity ? `${percent(Number((items / capacity).toPrecision(3)))} of a capacity of ${short(capacity)}` : '') },
  { name: 'members', head: 'Counters', chart: curves('Members of all counters', short, true), word: 'members',
    exact: count,
    figure: ({ members, members_of: of, counters }) =>
      [short(members), ` members in ${of < counters ? `${count(of)} of ` : ''}${count(counters)} counters`],
    note: (totals) => totals.modes.filter(([, number]) => number)
      .map(([mode, number]) => `${count(number)} ${mode}`).join(' · ') },
  { name: 'bytes', head: 'Memory', chart: curves('Memory of all filters and counters', bytes), word: 'bytes',
    exact: (value) => `${count(value)} B`,
    figure: (totals) => [bytes(totals.bytes), ''],
    note: ({ bytes: ours, used_memory: used, maxmemory }) => {
      if (!known(used)) return '';
      const limit = maxmemory ? `maxmemory ${bytes(maxmemory)}` : 'no maxmemory';
      return `${percent(Number((ours / used).toPrecision(2)))} of ${bytes(used)} used; ${limit}`;
    } },
];

function makeCards() {
  for (const card of CARDS) {
    card.figureText = el('span', {});
    card.figureNote = el('small', {});
    card.noteText = el('p', { class: 'note' });
    byId('cards').append(el('article', { class: 'card' }, el('h3', {}, card.head),
      el('p', { class: 'figure' }, card.figureText, card.figureNote), card.noteText, card.chart.host));
  }
  page.since = el('dl', { class: 'list' });
  page.sinceHead = el('h3', {}, 'Since the server started');
  byId('cards').append(el('article', { class: 'card' }, page.sinceHead, page.since));
}

function drawCards(state) {
  for (const card of CARDS) {
    // Before the first poll of the server, no sums are known.
    const [figure, note] = known(state.looked) ? card.figure(state.totals) : ['–', ''];
    setText(card.figureText, figure || '–');
    setText(card.figureNote, note);
    setText(card.noteText, card.note(state.totals));
  }
  const uptime = state.totals.uptime_seconds;
  setText(page.sinceHead, `Since the server started${known(uptime) ? `, ${span(uptime)} ago` : ''}`);
  page.since.replaceChildren(...(state.totals.since.length
    ? state.totals.since.map(([name, value]) =>
      el('div', { class: value > 0 ? null : 'zero' }, el('dt', {}, name), el('dd', {}, count(value))))
    : [el('p', { class: 'note' }, 'The server does not tell: its module has no such figures in INFO.')]));
}

const nodeField = ([name, value]) => el('div', {}, el('dt', {}, name.replace(/^rollcall_/, '')),
  el('dd', {}, name.endsWith('bytes') ? bytes(value) : count(value)));

function drawNodes(state) {
  byId('module').hidden = state.nodes.length === 0;
  const drawn = JSON.stringify(state.nodes);
  if (page.nodes === drawn) return;
  page.nodes = drawn;
  const open = new Set([...byId('nodes').querySelectorAll('details[open]')].map((node) => node.dataset.name));
  rebuild(byId('nodes'), state.nodes.map((node) => {
    const facts = [node.role, known(node.uptime_seconds) ? `up ${span(node.uptime_seconds)}` : '',
      known(node.used_memory) ? `${bytes(node.used_memory)} used` : '', node.server || '',
      known(node.version) ? `module ${node.version}` : 'no module of ours'].filter(Boolean).join(' · ');
    return el('details', { class: 'node', 'data-name': node.name, open: open.has(node.name) },
      el('summary', {}, el('span', { class: 'name' }, node.name), ' ', el('span', { class: 'dim' }, facts)),
      Object.keys(node.fields).length ? el('dl', { class: 'node-info' }, ...Object.entries(node.fields).map(nodeField))
        : el('p', { class: 'dim' }, 'Its module has no figures of its own in INFO.'));
  }));
}

async function drawTotals() {
  const series = await ask(`/api/series?seconds=${range.seconds}`);
  const line = axis(series, range.seconds, series.now);
  for (const { name, word, chart, exact } of CARDS) {
    chart.show({ ...line, lines: [{ name: word, values: series[name] || [], exact }] });
  }
}

// Describes in one or two lines what does not answer, or only with an error; null if everything is read.
function troubleOf({ state, lost, paused }) {
  if (lost) {
    return { since: lost.since, head: 'The dashboard does not answer any more', all: true, isDown: true,
      lines: [`Is rollcall dashboard still running, and the way to it open? (${lost.text})`] };
  }
  if (!state) return null;
  // A poll that takes too long counts as a server that does not answer.
  const patience = 15000 + 3 * Math.max(state.interval * 1000, 10 * state.took_ms);
  if (!paused && known(state.looked) && !state.is_unread && serverNow() - state.looked > patience) {
    const head = `The server ${state.server} has not answered`;
    return { since: state.looked, head, lines: ['A look takes longer than those before it.'], all: true, isDown: true };
  }
  if (!state.troubles.length) return null;
  const since = Math.min(...state.troubles.map((trouble) => trouble.since));
  const lines = state.troubles.map(
    (trouble) => [trouble.text, trouble.advice].filter(Boolean).map(sentence).join('. '));
  const who = (some) => (some.length > 1 ? `${some.length} servers` : `the server ${some[0].server}`);
  const down = state.troubles.filter((trouble) => trouble.is_down);
  const unknown = state.troubles.filter((trouble) => !trouble.is_down);
  const heads = [[down, 'reached'], [unknown, 'read']].filter(([some]) => some.length)
    .map(([some, what]) => `${who(some)} cannot be ${what}`);
  return { since, head: sentence(heads.join(', and ')), lines, all: state.is_unread, isDown: down.length > 0 };
}

function drawTrouble() {
  const { state } = page;
  const trouble = troubleOf(page);
  byId('trouble').hidden = !trouble;
  byId('main').classList.toggle('old', Boolean(trouble && trouble.all && state && known(state.looked)));
  if (!trouble) {
    page.troubleShown = '';
    return;
  }
  // Passing time changes the text, and screen readers should not announce that as news.
  const key = JSON.stringify([trouble, state && state.looked]);
  if (key !== page.troubleShown) {
    page.troubleShown = key;
    page.troubleTime = el('span', { 'aria-live': 'off' });
    let old = '';
    if (!trouble.all) old = ' Its keys are shown as they were seen last.';
    else if (state && known(state.looked)) old = ` What is below was seen at ${moment(state.looked, true)}.`;
    byId('trouble').replaceChildren(
      el('p', {}, badge(trouble.isDown ? 'critical' : 'warning',
        `${trouble.head} since ${moment(trouble.since, true)}`), page.troubleTime, `.${old}`),
      ...trouble.lines.map((line) => el('p', {}, line)));
  }
  setText(page.troubleTime, ` (${span((serverNow() - trouble.since) / 1000)})`);
}

function drawStatus() {
  const { state, lost, paused } = page;
  const trouble = troubleOf(page);
  const isLost = trouble?.all;
  const seen = state && known(state.looked) ? `${span((serverNow() - state.looked) / 1000)} ago` : '';
  const last = seen ? `, last seen ${seen}` : '';
  const [name, text] = isLost ? ['lost', `Not ${trouble.isDown ? 'reached' : 'read'}${last}`]
    : paused ? ['paused', `Paused, seen ${seen}`]
      : state && known(state.looked) ? ['live', `Live, seen ${seen}`] : ['wait', 'Connecting'];
  setAttribute(byId('status'), 'data-state', name);
  setText(byId('status-text'), text);
  drawTrouble();
}

// A key that the server answers with an error is shown like a key with a finding.
function withErrors(rows) {
  return rows.map((row) => (known(row.rejected)
    ? { ...row, findings: [...row.findings,
      { severity: 'warning', wrong: `says nothing of itself: ${row.rejected}` }] } : row));
}

function draw(state) {
  setText(byId('server'), state.nodes.length > 1 ? `${state.server} · ${state.nodes.length} primaries` : state.server);
  drawFindings(state);
  drawCards(state);
  keys.show(state);
  detail.show(state);
  drawNodes(state);
  setText(byId('footer'), `Looked at every ${span(state.interval)}, last in ${state.took_ms} ms. `
    + `History since ${moment(state.started)}, kept in memory for a week. Read-only. rollcall ${state.version}`);
}

// Milliseconds until new data can be expected, which is soon after the next poll of the server.
function untilNext({ state, lost }) {
  if (lost || !state) return 2000;
  const whole = state.interval * 1000;
  const due = known(state.looked) && !state.is_unread ? state.looked + whole + 300 - serverNow() : whole;
  return Math.max(1000, Math.min(whole, due));
}

async function refresh() {
  clearTimeout(page.timer);
  // Only one request runs at a time; the running one schedules the next.
  if (page.asking) return;
  page.asking = true;
  try {
    const { now, state } = await ask('/api/state');
    page.offset = now - Date.now();
    page.lost = null;
    state.rows = withErrors(state.rows);
    page.state = state;
    draw(state);
    await drawTotals();
  } catch (error) {
    page.lost = page.lost || { since: serverNow(), text: error.message };
  } finally {
    page.asking = false;
  }
  drawStatus();
  if (page.state) drawFindings(page.state);
  if (!page.paused) page.timer = setTimeout(refresh, untilNext(page));
}

byId('pause').addEventListener('click', () => {
  page.paused = !page.paused;
  byId('pause').setAttribute('aria-pressed', String(page.paused));
  setText(byId('pause'), page.paused ? 'Go on' : 'Pause');
  clearTimeout(page.timer);
  if (!page.paused) refresh();
  drawStatus();
});
byId('findings-more').addEventListener('click', () => { page.all = !page.all; drawFindings(page.state); });
segments(byId('ranges'), RANGES, range.seconds, (seconds) => {
  range.seconds = seconds;
  drawTotals().catch(() => {});
  if (detail.id) detail.read();
});
// A hidden page asks at once when it becomes visible again.
document.addEventListener('visibilitychange', () => { if (!document.hidden && !page.paused) refresh(); });
setInterval(drawStatus, 1000);
makeCards();
refresh();
