CREATE TABLE warehouse (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE product (sku TEXT PRIMARY KEY, name TEXT NOT NULL, unit_cost REAL NOT NULL, reorder_level INTEGER NOT NULL);
CREATE TABLE movement (
  id INTEGER PRIMARY KEY, day TEXT NOT NULL, sku TEXT NOT NULL REFERENCES product, warehouse_id INTEGER NOT NULL
  REFERENCES warehouse, quantity INTEGER NOT NULL
);
INSERT INTO warehouse VALUES (1, 'Bristol'), (2, 'Leeds'), (3, 'Cardiff'), (4, 'Hull');
INSERT INTO product VALUES
  ('BRG-204', 'Ball bearing 6204', 3.40, 150), ('CHN-08B', 'Roller chain 08B', 18.75, 40),
  ('GRS-400', 'Grease cartridge 400 g', 6.10, 60), ('SEA-35', 'Shaft seal 35 mm', 2.25, 200),
  ('VBT-A42', 'V-belt A42', 7.80, 80);
INSERT INTO movement (day, sku, warehouse_id, quantity) VALUES
  ('2026-01-04', 'BRG-204', 1, 120), ('2026-01-04', 'CHN-08B', 1, 30), ('2026-01-05', 'GRS-400', 1, 90),
  ('2026-01-05', 'SEA-35', 2, 260), ('2026-01-06', 'VBT-A42', 2, 75), ('2026-01-07', 'BRG-204', 2, 60),
  ('2026-01-09', 'BRG-204', 3, 45), ('2026-01-09', 'SEA-35', 3, 40), ('2026-01-12', 'CHN-08B', 4, 25),
  ('2026-01-12', 'VBT-A42', 4, 35), ('2026-01-15', 'BRG-204', 1, -50), ('2026-01-16', 'SEA-35', 2, -85),
  ('2026-01-19', 'GRS-400', 1, -40), ('2026-01-20', 'VBT-A42', 2, -20), ('2026-01-22', 'CHN-08B', 1, -6),
  ('2026-01-23', 'BRG-204', 3, -10), ('2026-01-26', 'VBT-A42', 4, -12), ('2026-01-29', 'SEA-35', 3, -30);
